from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.sue.answers import Evidence, InvalidAnswerError, extract, read
from castle.sue.dialogue import Dialogue, advance, begin
from castle.sue.method import LENSES, MOST_TURNS, Operator, Result
from castle.sue.schema import MOST_LINES, Schema, schema
from tests.sue.scripted import said, turns_of

LINES = ["first line", '  the second, with «guillemets» and "quotes"', "", "third\r"]


def check(
    operator: Operator, result: Result | None = None, turns: tuple[int, ...] = (), **other: Any
) -> None:
    raw = said(operator, result, lines={1: "first line", 2: "the second"}, turns=turns, **other)
    read(json.loads(json.dumps(raw)), operator, LINES, turns)


def test_an_answer_is_found_bare_fenced_and_in_prose() -> None:
    text = json.dumps({"a": '}{ and "quotes"', "b": {"c": [1]}})
    for wrapping in ("{}", "```json\n{}\n```", "Well:\n{}\nSo be it {{.", "<think>{{ {{}} hm</think>{}"):
        assert extract(wrapping.format(text)) == json.loads(text)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "not one JSON object"),
        ("[1]", "not one JSON object"),
        ('{"a": 1} {"b": 2}', "several JSON objects"),
        ('{"a": {"b": 1, "b": 1}}', "'b' is there twice"),
        ('{"a": NaN}', "not one JSON object"),
        ("{" * 10_000, "not one JSON object"),
        # What a model that loops says; minutes or hours if the time grew with the square of it.
        ("```" + "\n" * 400_000 + "x", "not one JSON object"),
        ("{" + "".join(f'"{n}": 1, ' for n in range(40_000)) + '"39999": 1}', "'39999' is there twice"),
    ],
    ids=lambda given: given[:20],
)
def test_anything_else_is_refused(output: str, reason: str) -> None:
    with pytest.raises(InvalidAnswerError, match=reason):
        extract(output)


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_output_does_anything_but_be_refused(output: str) -> None:
    try:
        raw = extract(output)
    except InvalidAnswerError:
        return
    with pytest.raises(InvalidAnswerError):
        read(raw, Operator.DEFINE, LINES, ())


WITNESS = said(Operator.COUNTEREXAMPLE, Result.FOUND, lines={1: "x"})["witness"]


@pytest.mark.parametrize(
    ("operator", "result", "other", "reason"),
    [
        (Operator.DEFINE, None, {"verdict": "PARTIAL"}, "goes with verdict SUPPORTED"),
        (Operator.DEFINE, None, {"verdict": ["SUPPORTED"]}, "verdict has to be one of"),
        (Operator.DEFINE, None, {"test_result": "CONSISTENT"}, "test_result of DEFINE has to be one of"),
        (Operator.DEFINE, None, {"answer_type": "criterion"}, "has to be definition or example"),
        (Operator.DIVIDE, None, {"answer_type": "none"}, "answer_type none goes with"),
        (Operator.DIVIDE, None, {"answer_type": "revision"}, "answer_type revision goes with"),
        (Operator.DIVIDE, None, {"answer": "  "}, "answer has to be a text"),
        (Operator.DIVIDE, None, {"answer": "x" * 4001}, "answer has to be a text"),
        (Operator.DIVIDE, None, {"answer": "\ud800"}, "half of a character"),
        (Operator.DIVIDE, None, {"evidence_lines": [1]}, "quote each of evidence_lines once"),
        (Operator.DIVIDE, None, {"evidence_lines": [1, 1]}, "each once"),
        (Operator.DIVIDE, None, {"evidence_lines": [True, 2]}, "a list of numbers"),
        (Operator.DIVIDE, None, {"evidence_lines": "1"}, "a list of at most"),
        (Operator.DIVIDE, None, {"evidence": [{"line": 1, "quote": "first"}]}, "quote each of"),
        (Operator.DIVIDE, None, {"evidence": [{"line": 1}]}, "keys line, quote"),
        (Operator.DIVIDE, None, {"evidence": [{"line": 1, "quote": " "}]}, "quote of an evidence is empty"),
        (Operator.DIVIDE, None, {"premises": []}, "at least one premise"),
        (Operator.DIVIDE, None, {"claim": "Another claim."}, "claim has to be empty"),
        (Operator.DIVIDE, None, {"witness": WITNESS}, "witness has to be null for ESTABLISHED"),
        (Operator.DIVIDE, None, {"addresses": [1]}, "nothing is revised"),
        (Operator.DIVIDE, None, {"revision_reason": "So."}, "nothing is revised"),
        (Operator.DIVIDE, Result.UNKNOWN, {"premises": [{}]}, "each premise has to be an object"),
        (Operator.DEFINE, None, {"claim": ""}, "claim has to be given"),
        (Operator.REVISE, None, {"addresses": [1]}, r"addresses has to be \[1, 2\]"),
        (Operator.REVISE, None, {"revision_reason": ""}, "revision_reason has to say"),
        (Operator.COUNTEREXAMPLE, Result.FOUND, {"witness": None}, "FOUND needs a witness"),
        (Operator.TEST_OPPOSITE, Result.POSSIBLE, {"witness": {**WITNESS, "lines_a": []}}, "lines_a is"),
        (Operator.DIVIDE, Result.CONFLICT, {"witness": {**WITNESS, "lines_b": []}}, "or lines_b is"),
        (Operator.DIVIDE, Result.CONFLICT, {"witness": {**WITNESS, "lines_b": [3]}}, "may name evidence"),
        (Operator.DIVIDE, Result.CONFLICT, {"witness": {**WITNESS, "reading_b": "It is kept."}}, "the same"),
    ],
)  # fmt: skip
def test_every_rule_is_held(
    operator: Operator, result: Result | None, other: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidAnswerError, match=reason):
        check(operator, result, (1, 2) if operator is Operator.REVISE else (), **other)


@pytest.mark.parametrize(
    ("premise", "reason"),
    [
        (("first lines", "stated", [1]), "has to stand in a line it cites"),
        (("first line", "stated", [2]), "has to stand in a line it cites"),
        (("So.", "inferred", []), "at least one premise"),
        (("So.", "assumption", [1]), "cites lines exactly when"),
        (("So.", "inferred", [3]), "may cite evidence_lines"),
        (("So.", "guess", [1]), "has to be stated, inferred or assumption"),
    ],
)
def test_premises_are_grounded(premise: tuple[str, str, list[int]], reason: str) -> None:
    found = dict(zip(("statement", "kind", "evidence_lines"), premise, strict=True))
    with pytest.raises(InvalidAnswerError, match=reason):
        check(Operator.DIVIDE, premises=[found])


@pytest.mark.parametrize(
    ("line", "quote", "reason"),
    [
        (2, "the Second", "does not stand in it"),
        (2, "first line", "does not stand in it"),
        (0, "first line", "no line 0; the last is 4"),
        (5, "first line", "no line 5"),
    ],
)
def test_a_quote_is_an_exact_piece_of_its_line(line: int, quote: str, reason: str) -> None:
    evidence = [{"line": line, "quote": quote}]
    premise = {"statement": "So.", "kind": "inferred", "evidence_lines": [line]}
    with pytest.raises(InvalidAnswerError, match=reason):
        check(Operator.DIVIDE, evidence_lines=[line], evidence=evidence, premises=[premise])


def test_keys_are_all_there_and_no_others() -> None:
    raw = said(Operator.DIVIDE, lines={2: '«guillemets» and "quotes"'})
    assert read(raw, Operator.DIVIDE, LINES, ()).evidence == (Evidence(2, '«guillemets» and "quotes"'),)
    with pytest.raises(InvalidAnswerError, match="lacks the keys witness"):
        read({k: v for k, v in raw.items() if k != "witness"}, Operator.DIVIDE, LINES, ())
    with pytest.raises(InvalidAnswerError, match="unknown keys score"):
        read({**raw, "score": 1}, Operator.DIVIDE, LINES, ())


def instances(found: Schema, text: str = "words") -> Any:
    """Yield an instance of each form of a schema, of those keywords that are used."""
    if "anyOf" in found:
        return [value for form in found["anyOf"] for value in instances(form)]
    if "const" in found:
        return [found["const"]]
    if "enum" in found:
        return [found["enum"][0]]
    if found["type"] == "object":
        return [{name: instances(part, name)[0] for name, part in found["properties"].items()}]
    if found["type"] == "array":
        return [[instances(found["items"])[0]] * found.get("minItems", 0)]
    return [None if found["type"] == "null" else text]


def dialogues() -> list[Dialogue]:
    """Return dialogues before each operator, a revision among them."""
    found = [begin(LENSES["meno"], MOST_TURNS)]
    while (operator := found[-1].operator) is not None:
        before = found[-1]
        result = Result.FOUND if operator is Operator.COUNTEREXAMPLE and not before.revisions else None
        raw = said(operator, result, lines={1: "first line"}, turns=turns_of(before))
        found.append(advance(before, read(raw, operator, LINES, turns_of(before))))
    return found[:-1]


@pytest.mark.parametrize("dialogue", dialogues(), ids=lambda found: f"{found.version}-{found.operator}")
def test_whatever_the_stricter_schema_allows_keeps_every_rule(dialogue: Dialogue) -> None:
    assert dialogue.operator is not None
    forms = instances(schema(dialogue, LINES, held=True))
    assert len(forms) >= 3 * 3 + 1
    for form in forms:
        read(form, dialogue.operator, LINES, turns_of(dialogue))
    # The first attempt is free to cite what it likes, and so is every attempt at a long specification.
    open_form = schema(dialogue, LINES)
    assert open_form["additionalProperties"] is False
    assert schema(dialogue, ["x"] * (MOST_LINES + 1), held=True) == open_form
