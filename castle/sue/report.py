"""The report of a review as Markdown: every line that it cites leads to its drawer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from castle.sue.dialogue import Dialogue, Turn
from castle.sue.method import Terminal
from castle.sue.questions import question
from castle.sue.review import Call
from castle.sue.runs import Plan
from castle.sue.specification import Specification

_ENDINGS = {
    Terminal.RESOLVED: "the lines settle the reading, as far as this lens asks",
    Terminal.APORIA_UNDEFINED: "the lines do not say what is meant",
    Terminal.APORIA_UNDERDETERMINED: "the lines leave more than one reading open",
    Terminal.APORIA_CONTRADICTED: "the lines contradict each other",
    Terminal.BOUNDED_STOP: "the dialogue was stopped at its bounds",
}
_MEANS = re.compile(r"([\\`*_\[\]<>|#])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def report(
    run_id: str,
    created_at: str,
    plan: Plan,
    specification: Specification,
    dialogue: Dialogue,
    calls: Sequence[Call],
    error: str = "",
) -> str:
    """Return the report of a dialogue, also of one that failed on the way: ``error`` says of what."""
    parts = [
        *_head(run_id, created_at, plan, dialogue, error),
        *_sources(specification),
        *_depth(dialogue),
        *_issues(dialogue),
        "## Dialogue\n",
        *(part for turn in dialogue.turns for part in _turn(dialogue, turn, specification)),
        *_calls(calls),
    ]
    return "\n".join(parts)


def _head(run_id: str, created_at: str, plan: Plan, dialogue: Dialogue, error: str) -> Iterator[str]:
    yield f"# Review of requirements: {plan.lens}\n"
    yield f"> {_safe(plan.decision)}\n"
    if dialogue.terminal is not None:
        yield f"**{dialogue.terminal}**: {_ENDINGS[dialogue.terminal]} ({_safe(dialogue.reason)}).\n"
    else:
        yield f"**Failed** after {len(dialogue.turns)} of {dialogue.max_turns} turns: {_safe(error)}\n"
    if dialogue.claim:
        yield f"Claim in force (version {dialogue.version}):\n"
        yield f"> {_safe(dialogue.claim)}\n"
    where = "another machine" if plan.external else "this machine"
    yield (
        "This is about how the requirements can be read. Whether they are true, wise or implemented was not "
        "asked. A model gave the answers; the questions, their order and the check of every quote are fixed. "
        "Secrets were masked before anything was sent."
    )
    yield ""
    yield "| | |\n|---|---|"
    yield f"| run | `{run_id}` |"
    yield f"| made | {created_at} |"
    yield f"| model | {_safe(plan.model)} at {_safe(plan.place)} ({_safe(plan.provider)}, {where}) |"
    yield f"| lens | {plan.lens}: {dialogue.lens.focus} |"
    yield f"| path | DEFINE, {', '.join(dialogue.lens.path)} |"
    yield f"| turns | {len(dialogue.turns)} of {dialogue.max_turns} |\n"


def _sources(specification: Specification) -> Iterator[str]:
    yield "## Sources\n"
    for part in specification.parts:
        known = part.metadata
        origin = f"{known.get('wing', '')} / {known.get('room', '')}, {known.get('source', '')}"
        # A heading, because every reader of Markdown makes a place to link to of one.
        yield f"### {part.drawer}\n"
        yield f"{_safe(origin)}: lines {part.line_start} to {part.line_end} of what was read.\n"
        yield f"[{part.snapshot}]({part.snapshot}), SHA-256 `{part.sha256}`\n"
    yield "`castle get ID` shows a drawer as it stands in the palace.\n"


def _depth(dialogue: Dialogue) -> Iterator[str]:
    yield "## Depth\n"
    yield "What was established for the claim in force; this is no score.\n"
    yield "| dimension | |\n|---|---|"
    for name, state in dialogue.profile.items():
        yield f"| {name} | {state.replace('_', ' ')} |"
    yield ""


def _issues(dialogue: Dialogue) -> Iterator[str]:
    if dialogue.issues:
        yield "## Left open\n"
        for issue in dialogue.issues:
            state = "" if issue.state == "open" else " (addressed by the revision, as the model says)"
            yield f"- turn {issue.turn}: {_safe(issue.what)}{state}"
        yield ""


def _turn(dialogue: Dialogue, turn: Turn, specification: Specification) -> Iterator[str]:
    answer = turn.answer
    asked = Dialogue(dialogue.lens, dialogue.max_turns, operator=turn.operator)
    yield f"### {turn.number}. {turn.operator}: {answer.test_result}\n"
    yield f"*{_safe(question(asked))}*\n"
    yield f"{_safe(answer.answer)}\n"
    yield f"{answer.verdict}, {answer.answer_type}, about claim {turn.version}.\n"
    if answer.claim:
        yield f"Claim {turn.version}: {_safe(answer.claim)}\n"
    if answer.revision_reason:
        turns = ", ".join(map(str, answer.addresses))
        yield f"Revised because: {_safe(answer.revision_reason)} (turns {turns})\n"
    for item in answer.evidence:
        yield f"- {_cited(specification, item.line)}: “{_safe(item.quote)}”"
    for premise in answer.premises:
        places = ", ".join(_cited(specification, line) for line in premise.evidence_lines)
        yield f"- {premise.kind}: {_safe(premise.statement)}{f' ({places})' if places else ''}"
    if answer.witness is not None:
        witness = answer.witness
        yield f"- witness: {_safe(witness.situation)}"
        for name, reading, lines in (
            ("one reading", witness.reading_a, witness.lines_a),
            ("the other", witness.reading_b, witness.lines_b),
        ):
            places = ", ".join(_cited(specification, line) for line in lines)
            yield f"  - {name}: {_safe(reading)}{f' ({places})' if places else ''}"
        yield f"  - not both: {_safe(witness.why_incompatible)}"
    for text in answer.open_questions:
        yield f"- open: {_safe(text)}"
    yield ""


def _calls(calls: Sequence[Call]) -> Iterator[str]:
    failed = [call for call in calls if call.outcome != "accepted"]
    yield "## Calls\n"
    yield f"{len(calls)} in all, {len(failed)} without a usable answer; each is kept in `calls/`.\n"
    for call in failed:
        yield f"- turn {call.turn}, attempt {call.attempt}: {call.outcome}, {_safe(call.reason)}"
    if failed:
        yield ""


def _cited(specification: Specification, line: int) -> str:
    """Return a link from a line of the specification to the drawer in the table of sources."""
    link = specification.link(line)
    place = "boundary" if link.line is None else f"line {link.line}"
    return f"[line {line}](#{link.drawer}) (`{link.drawer[:12]}` {place})"


def _safe(text: str) -> str:
    """Return a text on one line in which nothing is Markdown."""
    return _MEANS.sub(r"\\\1", _CONTROL.sub(" ", text)).strip()
