"""The dialogue as a state machine: which question comes next, and when it is over. It asks nobody anything.

Every operator is asked at most once about each claim, and there is one revision at most, so that a dialogue
ends whatever is answered; ``max_turns`` ends it before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from castle.sue.answers import Answer
from castle.sue.method import (
    CLAIMING,
    CLARIFIES,
    DIMENSIONS,
    MAX_REVISIONS,
    MOST_TURNS,
    SUCCESS,
    AnswerType,
    Lens,
    Operator,
    Result,
    Terminal,
)

IssueState = Literal["open", "model_addressed"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer; ``version`` is that of the claim that it examined or made."""

    number: int
    operator: Operator
    version: int
    answer: Answer

    @property
    def succeeded(self) -> bool:
        """Whether the answer establishes what the operator is after."""
        example = self.operator is Operator.DEFINE and self.answer.answer_type is AnswerType.EXAMPLE
        return self.answer.test_result is SUCCESS[self.operator] and not example


@dataclass(frozen=True, slots=True)
class Issue:
    """What an answer left open. A revision addresses what was open before it, by the model's own account."""

    turn: int
    what: str
    state: IssueState


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Where a dialogue stands. ``operator`` asks next, None once ``terminal`` says how it ended and why.

    ``version`` counts claims from 1 and is 0 before the first.
    """

    lens: Lens
    max_turns: int
    turns: tuple[Turn, ...] = ()
    operator: Operator | None = Operator.DEFINE
    claim: str = ""
    version: int = 0
    revisions: int = 0
    terminal: Terminal | None = None
    reason: str = ""

    @property
    def about_claim(self) -> tuple[Turn, ...]:
        """The turns about the claim in force, the one that made it included."""
        return tuple(turn for turn in self.turns if turn.version == self.version)

    @property
    def asked(self) -> frozenset[Operator]:
        """The operators that were asked about the claim in force."""
        return frozenset(turn.operator for turn in self.about_claim)

    @property
    def examined(self) -> frozenset[Operator]:
        """The dimensions that are established for the claim in force, each by its operator."""
        done = {turn.operator for turn in self.about_claim if turn.succeeded}
        # A revised claim is the definition that a new one would be.
        return frozenset({Operator.DEFINE if operator in CLAIMING else operator for operator in done})

    @property
    def issues(self) -> tuple[Issue, ...]:
        """All that was left open so far, in the order in which it came up."""
        return tuple(
            Issue(turn.number, what, "open" if turn.version == self.version else "model_addressed")
            for turn in self.turns
            for what in _left_open(turn)
        )

    @property
    def profile(self) -> dict[str, str]:
        """The seven dimensions of the claim in force: ``examined`` or ``not_established``; no score."""
        return {
            name: "examined" if operator in self.examined else "not_established"
            for operator, name in DIMENSIONS.items()
        }


def begin(lens: Lens, max_turns: int) -> Dialogue:
    """Return a dialogue before its first question; raises ValueError unless it has 1 to 14 turns."""
    if not 1 <= max_turns <= MOST_TURNS:
        raise ValueError(f"max_turns {max_turns} is not from 1 to {MOST_TURNS}")
    return Dialogue(lens, max_turns)


def advance(dialogue: Dialogue, answer: Answer) -> Dialogue:
    """Return the dialogue after an answer to the question it asks; raises ValueError when it is over."""
    operator = dialogue.operator
    if operator is None:
        raise ValueError("the dialogue is over")
    claims = operator in CLAIMING and bool(answer.claim)
    version = dialogue.version + 1 if claims else dialogue.version
    after = replace(
        dialogue,
        turns=(*dialogue.turns, Turn(len(dialogue.turns) + 1, operator, version, answer)),
        claim=answer.claim if claims else dialogue.claim,
        version=version,
        revisions=dialogue.revisions + (operator is Operator.REVISE),
    )
    following = _route(after)
    if isinstance(following, Operator):
        if len(after.turns) < after.max_turns:
            return replace(after, operator=following)
        spent = f"all {after.max_turns} turns are spent, and {following} was to come"
        following = Terminal.BOUNDED_STOP, spent
    terminal, reason = following
    return replace(after, operator=None, terminal=terminal, reason=reason)


def _route(after: Dialogue) -> Operator | tuple[Terminal, str]:
    """Return what follows the last turn: the next operator, or how and why the dialogue ends."""
    turn = after.turns[-1]
    operator, result = turn.operator, turn.answer.test_result
    if result is Result.UNKNOWN:
        undefined = operator in (Operator.DEFINE, Operator.CAUSE_OR_CRITERION)
        terminal = Terminal.APORIA_UNDEFINED if undefined else Terminal.APORIA_UNDERDETERMINED
        return terminal, f"the text is silent on what {operator} asks"
    if result is Result.CONFLICT:
        return Terminal.APORIA_CONTRADICTED, f"the text contradicts itself on what {operator} asks"
    if result is Result.POSSIBLE:
        return Terminal.APORIA_UNDERDETERMINED, "the text allows the opposite of the claim, too"
    if result is Result.FOUND:
        if after.revisions < MAX_REVISIONS:
            return Operator.REVISE
        return Terminal.BOUNDED_STOP, "a counterexample was found to the revised claim, too"
    if not turn.succeeded and (clarifying := CLARIFIES[operator]) not in after.asked:
        return clarifying
    return next((each for each in after.lens.path if each not in after.asked), None) or _end(after)


def _end(after: Dialogue) -> tuple[Terminal, str]:
    """Say how a dialogue ends in which every operator was asked."""
    lacking = [name for name, state in after.profile.items() if state != "examined"]
    unsettled = sum(issue.state == "open" for issue in after.issues)
    if not lacking and not unsettled:
        return Terminal.RESOLVED, "every dimension was examined, and nothing is open"
    parts = [f"not established: {', '.join(lacking)}"] if lacking else []
    parts += [f"{unsettled} open issue{'' if unsettled == 1 else 's'}"] if unsettled else []
    return Terminal.APORIA_UNDERDETERMINED, f"every question was asked; {'; '.join(parts)}"


def _left_open(turn: Turn) -> list[str]:
    """Return what one answer left open: its failing, its assumptions and its own questions."""
    answer = turn.answer
    found = [] if turn.succeeded else [f"{turn.operator} came to {answer.test_result}"]
    if turn.operator is Operator.DEFINE and answer.answer_type is AnswerType.EXAMPLE:
        found = ["DEFINE was answered with an example"]
    found += [f"assumed: {each.statement}" for each in answer.premises if each.kind == "assumption"]
    return found + [f"asked: {question}" for question in answer.open_questions]
