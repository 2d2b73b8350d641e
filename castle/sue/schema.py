"""The rules of an answer as a JSON schema, for servers that can hold a model to one.

The first attempt is held to the keys and their types. The second, after an answer that broke a rule or took
too long, is held to short answers that break none as far as a schema can say that: one whole line as
evidence, and only results, verdicts and witnesses that go together. What a schema cannot say is checked in
``castle.sue.answers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castle.sue.answers import FIELDS, MOST_TEXT
from castle.sue.dialogue import Dialogue
from castle.sue.method import CLAIMING, WITNESSED, AnswerType, Operator, Result, Verdict, results_of

MOST_LINES = 60
"""Lines up to which a schema offers each of them: a longer one slows servers more than it helps."""
_SHORT = 200

Schema = Mapping[str, Any]


def schema(dialogue: Dialogue, lines: Sequence[str], *, held: bool = False) -> Schema:
    """Return the schema of the next answer; ``held`` is for an attempt that must not fail again."""
    operator = dialogue.operator
    assert operator is not None
    quotable = [number for number, line in enumerate(lines, 1) if line.strip()]
    if not held or len(quotable) > MOST_LINES:
        return _open(operator)
    turns = [turn.number for turn in dialogue.about_claim]
    return {"anyOf": list(_forms(operator, lines, quotable, turns))}


def _open(operator: Operator) -> Schema:
    """Return the schema of any answer: keys, types, and the words there are to choose from."""
    numbers = {"type": "array", "items": {"type": "integer"}}
    premise = {"statement": _TEXT, "kind": _enum(["stated", "inferred", "assumption"])}
    words = dict.fromkeys(("situation", "reading_a", "reading_b", "why_incompatible"), _TEXT)
    witness = _object({**words, "lines_a": numbers, "lines_b": numbers})
    types = [kind for kind in AnswerType if (kind is AnswerType.REVISION) == (operator is Operator.REVISE)]
    return _object(
        {
            "answer": _TEXT,
            "verdict": _enum(Verdict),
            "answer_type": _enum(dict.fromkeys((*types, AnswerType.NONE))),
            "evidence_lines": numbers,
            "evidence": _list(_object({"line": {"type": "integer"}, "quote": _TEXT})),
            "premises": _list(_object({**premise, "evidence_lines": numbers})),
            "claim": _TEXT,
            "test_result": _enum(results_of(operator)),
            "witness": {"anyOf": [{"type": "null"}, witness]},
            "open_questions": _list(_TEXT),
            "addresses": numbers,
            "revision_reason": _TEXT,
        }
    )


def _forms(
    operator: Operator, lines: Sequence[str], quotable: Sequence[int], turns: Sequence[int]
) -> Iterator[Schema]:
    """Yield one form for each result, verdict and line; what tells forms apart comes first in each."""
    for result, verdicts in results_of(operator).items():
        for verdict in sorted(verdicts):
            if verdict is Verdict.SILENT:
                yield _form(operator, result, verdict, None, "", turns)
            else:
                for number in quotable:
                    yield _form(operator, result, verdict, number, lines[number - 1], turns)


def _form(
    operator: Operator, result: Result, verdict: Verdict, number: int | None, line: str, turns: Sequence[int]
) -> Schema:
    silent = number is None
    cited: list[object] = [] if silent else [number]
    text = {"type": "string", "minLength": 1, "maxLength": _SHORT}
    premise = _object({"kind": _const("inferred"), "evidence_lines": _const(cited), "statement": text})
    words = dict.fromkeys(("situation", "reading_a", "reading_b", "why_incompatible"), text)
    witness = _object({"lines_a": _const(cited), "lines_b": _const(cited), **words})
    claims, revises = operator in CLAIMING and not silent, operator is Operator.REVISE and not silent
    found = {
        "test_result": _const(str(result)),
        "verdict": _const(str(verdict)),
        "evidence_lines": _const(cited),
        "evidence": _const([] if silent else [{"line": number, "quote": line}]),
        "answer_type": _enum(_types(operator, silent)),
        "answer": text,
        "premises": _const([])
        if silent
        else {"type": "array", "items": premise, "minItems": 1, "maxItems": 1},
        "claim": text if claims else _const(""),
        "witness": witness if result in WITNESSED else {"type": "null"},
        "open_questions": {"type": "array", "items": text, "maxItems": 2},
        "addresses": _const(list(turns) if revises else []),
        "revision_reason": text if revises else _const(""),
    }
    assert set(found) == set(FIELDS)
    return _object(found)


def _types(operator: Operator, silent: bool) -> list[AnswerType]:
    if silent:
        return [AnswerType.NONE]
    if operator is Operator.DEFINE:
        return [AnswerType.DEFINITION, AnswerType.EXAMPLE]
    if operator is Operator.REVISE:
        return [AnswerType.REVISION]
    return [kind for kind in AnswerType if kind not in (AnswerType.NONE, AnswerType.REVISION)]


_TEXT: Schema = {"type": "string", "maxLength": MOST_TEXT}


def _object(properties: Mapping[str, Any]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _enum(values: Iterator[str] | Any) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def _const(value: object) -> Schema:
    return {"const": value}
