"""The trace: all that was asked and answered, where it stands in the sources, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from castle.sue.dialogue import Dialogue, Turn
from castle.sue.method import MAX_REVISIONS, POLICY
from castle.sue.questions import question
from castle.sue.review import Call
from castle.sue.runs import CALLS, Plan
from castle.sue.specification import Specification, digest

SCHEMA = 2


def call_file(call: Call) -> str:
    """Return the name of the file that keeps an attempt, below the directory of its run."""
    return f"{CALLS}/{call.turn:03d}-{call.attempt}.json"


def call_record(call: Call) -> dict[str, object]:
    """Return what is kept of an attempt, the output of the model included."""
    sha256 = digest(call.output.encode("utf-8", "replace"))
    return {**asdict(call), "operator": str(call.operator), "output_sha256": sha256}


def trace(
    run_id: str,
    plan: Plan,
    specification: Specification,
    dialogue: Dialogue,
    calls: Sequence[Call],
    error: str = "",
) -> dict[str, object]:
    """Return the trace of a dialogue that has ended, or as far as it has come."""
    return {
        "schema": SCHEMA,
        "policy": POLICY,
        "run_id": run_id,
        "spec_sha256": specification.sha256,
        "provider": plan.provider,
        "model": plan.model,
        "terminal_state": dialogue.terminal or "",
        "reason": dialogue.reason,
        "error": error,
        "claim": dialogue.claim,
        "claim_version": dialogue.version,
        "turns": [_turn(dialogue, turn) for turn in dialogue.turns],
        "depth_profile": dialogue.profile,
        "issues": [asdict(issue) for issue in dialogue.issues],
        "calls": [
            {**{k: v for k, v in call_record(call).items() if k != "output"}, "file": call_file(call)}
            for call in calls
        ],
        "method": {
            "lens": dialogue.lens.name,
            "path": ["DEFINE", *map(str, dialogue.lens.path)],
            "focus": dialogue.lens.focus,
            "max_turns": dialogue.max_turns,
            "max_revisions": MAX_REVISIONS,
            "scope": "how requirements can be read; neither their truth nor their implementation",
        },
        "source_links": {
            str(line): _link(specification, line)
            for line in sorted({line for turn in dialogue.turns for line in turn.answer.evidence_lines})
        },
    }


def _turn(dialogue: Dialogue, turn: Turn) -> dict[str, object]:
    asked = Dialogue(dialogue.lens, dialogue.max_turns, operator=turn.operator)
    return {
        "number": turn.number,
        "operator": str(turn.operator),
        "claim_version": turn.version,
        "question": question(asked),
        **asdict(turn.answer),
    }


def _link(specification: Specification, line: int) -> dict[str, object]:
    link = specification.link(line)
    found: dict[str, object] = {
        "drawer_id": link.drawer,
        "snapshot": link.snapshot,
        "sha256": link.sha256,
        "drawer_line": link.line,
    }
    return found if link.line is not None else {**found, "boundary": dict(link.metadata)}
