"""What a model answered: found in its output, read strictly, and held against the specification."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeVar, cast

from castle.sue.method import CLAIMING, WITNESSED, AnswerType, Operator, Result, Verdict, results_of

MOST_TEXT = 4_000
MOST_ITEMS = 40

PremiseKind = Literal["stated", "inferred", "assumption"]
Choice = TypeVar("Choice", bound=StrEnum)

# Only blanks of the same line come before its end: a model that loops writes thousands of empty lines.
_FENCE = re.compile(r"```[a-zA-Z]*[^\S\n]*\n(.*?)```", re.DOTALL)


class InvalidAnswerError(Exception):
    """An answer breaks a rule, which the message names in words for the model."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An exact piece of one line."""

    line: int
    quote: str


@dataclass(frozen=True, slots=True)
class Premise:
    """What an answer rests on: words of a cited line, inferred from lines, or an assumption without any."""

    statement: str
    kind: PremiseKind
    evidence_lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """A situation in which two readings part, and the lines that allow each."""

    situation: str
    reading_a: str
    reading_b: str
    why_incompatible: str
    lines_a: tuple[int, ...]
    lines_b: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that keeps every rule. ``claim`` is "" but for DEFINE and REVISE."""

    answer: str
    verdict: Verdict
    answer_type: AnswerType
    evidence_lines: tuple[int, ...]
    evidence: tuple[Evidence, ...]
    premises: tuple[Premise, ...]
    claim: str
    test_result: Result
    witness: Witness | None
    open_questions: tuple[str, ...]
    addresses: tuple[int, ...]
    revision_reason: str


FIELDS = tuple(Answer.__dataclass_fields__)
"""The keys of an answer, all of which it has to have."""


def extract(output: str) -> Mapping[str, Any]:
    """Return the one JSON object of an output: all of it, a fenced block, or one among prose.

    Raises InvalidAnswerError; so does an object that has a key twice.
    """
    said = output.rpartition("</think>")[2].strip()
    for candidates in ([output], [said], _FENCE.findall(said), list(_balanced(said))):
        found = [value for text in candidates if isinstance(value := _parsed(text), dict)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidAnswerError("the output holds several JSON objects: give one")
    raise InvalidAnswerError("the output is not one JSON object")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidAnswerError(f"the key {twice[:40]!r} is there twice")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _balanced(text: str) -> Iterator[str]:
    """Yield the outermost pieces in braces, reading strings as JSON does."""
    start, depth, inside, escaped = 0, 0, False, False
    for place, char in enumerate(text):
        if inside:
            inside = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"' and depth:
            inside, escaped = True, False
        elif char == "{":
            start = place if depth == 0 else start
            depth += 1
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                yield text[start : place + 1]


def read(raw: Mapping[str, Any], operator: Operator, lines: Sequence[str], turns: Sequence[int]) -> Answer:
    """Return the answer to a question; raises InvalidAnswerError with the first rule that it breaks.

    ``lines`` are those of the specification; ``turns`` are the numbers of the turns about the claim in force.
    """
    missing = [name for name in FIELDS if name not in raw]
    unknown = [str(name)[:40] for name in raw if name not in FIELDS]
    if missing or unknown:
        what = f"lacks the keys {', '.join(missing)}" if missing else f"has unknown keys {', '.join(unknown)}"
        raise InvalidAnswerError(f"the object {what}")
    answer = Answer(
        answer=_text(raw["answer"], "answer"),
        verdict=_choice(raw["verdict"], "verdict", Verdict),
        answer_type=_choice(raw["answer_type"], "answer_type", AnswerType),
        evidence_lines=_numbers(raw["evidence_lines"], "evidence_lines"),
        evidence=tuple(_evidence(item) for item in _list(raw["evidence"], "evidence")),
        premises=tuple(_premise(item) for item in _list(raw["premises"], "premises")),
        claim=_text(raw["claim"] or "", "claim", empty=True),
        test_result=_choice(raw["test_result"], "test_result", Result),
        witness=None if raw["witness"] is None else _witness(raw["witness"]),
        open_questions=tuple(
            _text(t, "open_questions") for t in _list(raw["open_questions"], "open_questions")
        ),
        addresses=_numbers(raw["addresses"], "addresses"),
        revision_reason=_text(raw["revision_reason"] or "", "revision_reason", empty=True),
    )
    _check_result(answer, operator)
    _check_evidence(answer, lines)
    _check_premises(answer, lines)
    _check_claim(answer, operator, turns)
    _check_witness(answer)
    return answer


# Types


def _text(value: Any, name: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT or not (empty or value.strip()):
        raise InvalidAnswerError(f"{name} has to be a text of at most {MOST_TEXT:,} characters, not empty")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidAnswerError(f"{name} holds half of a character")
    return value.strip()


def _choice(value: Any, name: str, kind: type[Choice]) -> Choice:
    try:
        return kind(value)
    except ValueError:
        raise InvalidAnswerError(f"{name} has to be one of {', '.join(kind)}") from None


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise InvalidAnswerError(f"{name} has to be a list of at most {MOST_ITEMS}")
    return value


def _numbers(value: Any, name: str) -> tuple[int, ...]:
    found = _list(value, name)
    if any(type(number) is not int for number in found) or len(set(found)) < len(found):
        raise InvalidAnswerError(f"{name} has to be a list of numbers, each once")
    return tuple(found)


def _object(value: Any, name: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise InvalidAnswerError(f"{name} has to be an object with the keys {', '.join(keys)}")
    return value


def _evidence(value: Any) -> Evidence:
    item = _object(value, "each evidence", ("line", "quote"))
    if type(item["line"]) is not int:
        raise InvalidAnswerError("the line of an evidence has to be a number")
    quote = item["quote"]
    if not isinstance(quote, str) or not quote.strip():
        raise InvalidAnswerError("the quote of an evidence is empty")
    return Evidence(item["line"], quote)


def _premise(value: Any) -> Premise:
    item = _object(value, "each premise", ("statement", "kind", "evidence_lines"))
    if item["kind"] not in ("stated", "inferred", "assumption"):
        raise InvalidAnswerError("the kind of a premise has to be stated, inferred or assumption")
    statement = _text(item["statement"], "the statement of a premise")
    return Premise(
        statement, cast(PremiseKind, item["kind"]), _numbers(item["evidence_lines"], "evidence_lines")
    )


def _witness(value: Any) -> Witness:
    words = ("situation", "reading_a", "reading_b", "why_incompatible")
    item = _object(value, "witness", (*words, "lines_a", "lines_b"))
    situation, reading_a, reading_b, why = (_text(item[name], name) for name in words)
    lines_a, lines_b = _numbers(item["lines_a"], "lines_a"), _numbers(item["lines_b"], "lines_b")
    return Witness(situation, reading_a, reading_b, why, lines_a, lines_b)


# Rules


def _check_result(answer: Answer, operator: Operator) -> None:
    allowed = results_of(operator)
    if answer.test_result not in allowed:
        raise InvalidAnswerError(f"test_result of {operator} has to be one of {', '.join(allowed)}")
    if answer.verdict not in allowed[answer.test_result]:
        fitting = " or ".join(sorted(allowed[answer.test_result]))
        raise InvalidAnswerError(f"test_result {answer.test_result} goes with verdict {fitting}")
    kind = answer.answer_type
    if (answer.verdict is Verdict.SILENT) != (kind is AnswerType.NONE):
        raise InvalidAnswerError("answer_type none goes with verdict SILENT and with no other")
    if kind is AnswerType.NONE:
        return
    if (kind is AnswerType.REVISION) != (operator is Operator.REVISE):
        raise InvalidAnswerError("answer_type revision goes with the operator REVISE and with no other")
    if operator is Operator.DEFINE and kind not in (AnswerType.DEFINITION, AnswerType.EXAMPLE):
        raise InvalidAnswerError("answer_type of DEFINE has to be definition or example")


def _check_evidence(answer: Answer, lines: Sequence[str]) -> None:
    cited = [item.line for item in answer.evidence]
    if sorted(cited) != sorted(answer.evidence_lines):
        raise InvalidAnswerError("evidence has to quote each of evidence_lines once, and no other line")
    for item in answer.evidence:
        if not 1 <= item.line <= len(lines):
            raise InvalidAnswerError(f"there is no line {item.line}; the last is {len(lines)}")
        if item.quote not in lines[item.line - 1]:
            raise InvalidAnswerError(f"the quote of line {item.line} does not stand in it: copy it exactly")


def _check_premises(answer: Answer, lines: Sequence[str]) -> None:
    if answer.verdict is Verdict.SILENT:
        if answer.evidence or answer.premises:
            raise InvalidAnswerError("a SILENT answer has no evidence and no premises")
        return
    if not any(premise.evidence_lines for premise in answer.premises):
        raise InvalidAnswerError("at least one premise has to be stated or inferred, with its evidence_lines")
    for premise in answer.premises:
        cited = premise.evidence_lines
        if (premise.kind == "assumption") != (not cited):
            raise InvalidAnswerError("a premise cites lines exactly when it is stated or inferred")
        if not set(cited) <= set(answer.evidence_lines):
            raise InvalidAnswerError("a premise may cite evidence_lines of the answer only")
        if premise.kind == "stated" and not any(premise.statement in lines[line - 1] for line in cited):
            raise InvalidAnswerError("the statement of a stated premise has to stand in a line it cites")


def _check_claim(answer: Answer, operator: Operator, turns: Sequence[int]) -> None:
    wanted = operator in CLAIMING and answer.verdict is not Verdict.SILENT
    if wanted != bool(answer.claim):
        raise InvalidAnswerError(
            "claim has to be given" if wanted else "claim has to be empty: this question does not change it"
        )
    if operator is Operator.REVISE and answer.verdict is not Verdict.SILENT:
        if sorted(answer.addresses) != sorted(turns):
            raise InvalidAnswerError(f"addresses has to be {sorted(turns)}: every turn about the claim")
        if not answer.revision_reason:
            raise InvalidAnswerError("revision_reason has to say why the claim is another now")
    elif answer.addresses or answer.revision_reason:
        raise InvalidAnswerError("addresses and revision_reason have to be empty: nothing is revised")


def _check_witness(answer: Answer) -> None:
    witness, result = answer.witness, answer.test_result
    if (result in WITNESSED) != (witness is not None):
        raise InvalidAnswerError(
            f"test_result {result} needs a witness"
            if witness is None
            else f"witness has to be null for {result}"
        )
    if witness is None:
        return
    if not {*witness.lines_a, *witness.lines_b} <= set(answer.evidence_lines):
        raise InvalidAnswerError("lines_a and lines_b may name evidence_lines of the answer only")
    if not witness.lines_a or (result is Result.CONFLICT and not witness.lines_b):
        raise InvalidAnswerError("lines_a is empty, or lines_b is for CONFLICT: say which lines allow what")
    if witness.reading_a == witness.reading_b:
        raise InvalidAnswerError("reading_a and reading_b are the same")
