"""Leading a dialogue to its end: each question is asked, its answer checked, asked once more if need be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from castle.llm.base import LlmError, UnansweredError
from castle.llm.guard import ForbiddenError
from castle.llm.http import AnsweredError
from castle.sue.answers import Answer, InvalidAnswerError, extract, read
from castle.sue.dialogue import Dialogue, advance
from castle.sue.method import Operator
from castle.sue.questions import SYSTEM, corrected, prompt
from castle.sue.schema import Schema, schema
from castle.sue.specification import digest

ATTEMPTS = 2

Outcome = Literal["accepted", "rejected", "failed", "unanswered", "refused"]
"""``rejected`` is an answer that breaks a rule, ``failed`` one that is none, such as one that was cut off.

``unanswered`` is a model that was not there or took too long, ``refused`` a server that said no.
"""


class Asking(Protocol):
    """What can be asked: the instructions, a prompt, and the schema of the answer. Raises LlmError."""

    def __call__(self, system: str, prompt: str, schema: Schema) -> str:
        """Return what the model says."""


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt: what it was about, what came back (``output``, "" for nothing), and what it was worth.

    ``held`` says whether the schema was the stricter one.
    """

    turn: int
    attempt: int
    operator: Operator
    prompt_sha256: str
    output: str
    outcome: Outcome
    reason: str
    held: bool


class ReviewFailedError(Exception):
    """No usable answer was had; the message says why."""


Record = Callable[[Call, Dialogue], None]
"""Told of every attempt, with the dialogue as it stands after it."""


def lead(dialogue: Dialogue, decision: str, lines: Sequence[str], ask: Asking, record: Record) -> Dialogue:
    """Return the dialogue at its end.

    Each question has two attempts: after an answer that breaks a rule it is asked again with that rule, after
    none in time it is asked again as it was. Raises ReviewFailedError when both fail, or the model says no.
    """
    while dialogue.operator is not None:
        dialogue = _turn(dialogue, decision, lines, ask, record)
    return dialogue


def _turn(dialogue: Dialogue, decision: str, lines: Sequence[str], ask: Asking, record: Record) -> Dialogue:
    operator = dialogue.operator
    assert operator is not None
    asked = prompt(dialogue, decision, lines)
    call, after = _attempt(dialogue, operator, 1, asked, lines, ask)
    record(call, after or dialogue)
    if after is None and call.outcome != "refused":
        again = corrected(asked, call.reason) if call.outcome == "rejected" else asked
        call, after = _attempt(dialogue, operator, 2, again, lines, ask, held=True)
        record(call, after or dialogue)
    if after is None:
        raise ReviewFailedError(f"question {call.turn}, {operator}: {call.reason}")
    return after


def _attempt(
    dialogue: Dialogue,
    operator: Operator,
    attempt: int,
    text: str,
    lines: Sequence[str],
    ask: Asking,
    *,
    held: bool = False,
) -> tuple[Call, Dialogue | None]:
    """Ask once; return what came of it, and the dialogue after the answer, None for no usable one."""
    output, outcome, reason = "", "accepted", ""
    after = None
    try:
        output = ask(SYSTEM, text, schema(dialogue, lines, held=held))
        after = advance(dialogue, _read(output, operator, dialogue, lines))
    except InvalidAnswerError as error:
        outcome, reason = "rejected", str(error)
    except UnansweredError as error:
        outcome, reason = "unanswered", str(error)
    except (AnsweredError, ForbiddenError) as error:
        outcome, reason = "refused", str(error)
    except LlmError as error:
        outcome, reason = "failed", str(error)
    sent = digest(text.encode("utf-8", "replace"))
    number = len(dialogue.turns) + 1
    return Call(number, attempt, operator, sent, output, cast(Outcome, outcome), reason, held), after


def _read(output: str, operator: Operator, dialogue: Dialogue, lines: Sequence[str]) -> Answer:
    return read(extract(output), operator, lines, [turn.number for turn in dialogue.about_claim])
