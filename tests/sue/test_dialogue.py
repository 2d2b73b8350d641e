"""Every route of every lens, and that none goes on for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.sue.answers import Answer, read
from castle.sue.dialogue import Dialogue, advance, begin
from castle.sue.method import (
    CLARIFIES,
    LENSES,
    MOST_TURNS,
    SUCCESS,
    Operator,
    Result,
    Terminal,
    Verdict,
    results_of,
)
from tests.sue.scripted import said, turns_of

PATHS = {
    "euthyphro": "DCVXFO",
    "meno": "CDXVFO",
    "parmenides": "FOVDCX",
    "cratylus": "DOCVXF",
    "theaetetus": "CFDXVO",
    "sophist": "VDOCXF",
    "gorgias": "FCXVDO",
    "republic": "DVCXFO",
    "philebus": "CVODXF",
}
NAMES = {
    "D": Operator.DISTINGUISH,
    "C": Operator.CAUSE_OR_CRITERION,
    "V": Operator.DIVIDE,
    "X": Operator.COUNTEREXAMPLE,
    "F": Operator.FOLLOW_CONSEQUENCE,
    "O": Operator.TEST_OPPOSITE,
}


def answer(dialogue: Dialogue, result: Result | None = None, **other: Any) -> Answer:
    operator = dialogue.operator
    assert operator is not None
    raw = said(operator, result, lines={1: "x"}, turns=turns_of(dialogue), **other)
    return read(raw, operator, ["x"], turns_of(dialogue))


def led(lens: str, *results: Result | None, turns: int = MOST_TURNS) -> Dialogue:
    """Return the dialogue after these results, each None a success."""
    dialogue = begin(LENSES[lens], turns)
    for result in results:
        dialogue = advance(dialogue, answer(dialogue, result))
    return dialogue


def until(lens: str, operator: Operator) -> Dialogue:
    """Return a dialogue that has succeeded up to this operator."""
    dialogue = begin(LENSES[lens], MOST_TURNS)
    while dialogue.operator is not operator:
        dialogue = advance(dialogue, answer(dialogue))
    return dialogue


def test_the_nine_lenses_have_their_paths() -> None:
    assert {name: list(lens.path) for name, lens in LENSES.items()} == {
        name: [NAMES[letter] for letter in letters] for name, letters in PATHS.items()
    }


@pytest.mark.parametrize("lens", LENSES)
def test_success_follows_the_path_to_its_end(lens: str) -> None:
    dialogue = led(lens, *[None] * 7)
    assert [turn.operator for turn in dialogue.turns] == [Operator.DEFINE, *LENSES[lens].path]
    assert (dialogue.terminal, dialogue.operator) == (Terminal.RESOLVED, None)
    assert set(dialogue.profile.values()) == {"examined"}
    assert dialogue.issues == ()
    with pytest.raises(ValueError, match="over"):
        advance(dialogue, dialogue.turns[0].answer)


@pytest.mark.parametrize("lens", LENSES)
def test_what_ends_a_dialogue_ends_it_at_every_place(lens: str) -> None:
    for operator in (Operator.DEFINE, *LENSES[lens].path):
        before = until(lens, operator)
        undefined = operator in (Operator.DEFINE, Operator.CAUSE_OR_CRITERION)
        silent = advance(before, answer(before, Result.UNKNOWN))
        assert silent.terminal is (
            Terminal.APORIA_UNDEFINED if undefined else Terminal.APORIA_UNDERDETERMINED
        )
        torn = advance(before, answer(before, Result.CONFLICT))
        assert torn.terminal is Terminal.APORIA_CONTRADICTED
        assert len(torn.turns) == len(before.turns) + 1
    before = until(lens, Operator.TEST_OPPOSITE)
    assert advance(before, answer(before, Result.POSSIBLE)).terminal is Terminal.APORIA_UNDERDETERMINED


@pytest.mark.parametrize("lens", LENSES)
def test_an_answer_in_part_is_clarified_and_then_the_path_goes_on(lens: str) -> None:
    for operator in (Operator.DEFINE, *LENSES[lens].path):
        before = until(lens, operator)
        after = advance(before, answer(before, Result.INCOMPLETE))
        clarifying = CLARIFIES[operator]
        left = [each for each in LENSES[lens].path if each not in after.asked]
        expected = clarifying if clarifying in left else next(iter(left), None)
        assert after.operator is expected
        while after.operator is not None:
            after = advance(after, answer(after))
        assert after.terminal is Terminal.APORIA_UNDERDETERMINED
        assert "not established" in after.reason
        assert len(after.turns) == 7
        assert list(after.profile.values()).count("not_established") == 1


def test_a_partial_answer_leads_where_it_should() -> None:
    assert led("meno", Result.INCOMPLETE).operator is Operator.DISTINGUISH
    assert led("euthyphro", None, Result.INCOMPLETE).operator is Operator.CAUSE_OR_CRITERION
    assert led("meno", None, Result.INCOMPLETE).operator is Operator.DIVIDE


@pytest.mark.parametrize("lens", LENSES)
def test_an_example_is_no_definition(lens: str) -> None:
    before = begin(LENSES[lens], MOST_TURNS)
    after = advance(before, answer(before, answer_type="example"))
    assert after.operator is Operator.DISTINGUISH
    assert after.profile["definition"] == "not_established"
    assert [issue.what for issue in after.issues] == ["DEFINE was answered with an example"]


@pytest.mark.parametrize("lens", LENSES)
def test_a_counterexample_is_answered_by_one_revision(lens: str) -> None:
    before = until(lens, Operator.COUNTEREXAMPLE)
    found = advance(before, answer(before, Result.FOUND))
    assert found.operator is Operator.REVISE
    revised = advance(found, answer(found))
    assert (revised.version, revised.revisions, revised.claim) == (2, 1, "Claim of REVISE.")
    assert revised.operator is LENSES[lens].path[0]
    assert revised.examined == {Operator.DEFINE}
    assert {issue.state for issue in revised.issues} == {"model_addressed"}
    end = revised
    while end.operator is not None:
        end = advance(end, answer(end))
    assert end.terminal is Terminal.RESOLVED
    assert len(end.turns) == len(found.turns) + 7 <= MOST_TURNS

    again = revised
    while again.operator is not Operator.COUNTEREXAMPLE:
        again = advance(again, answer(again))
    again = advance(again, answer(again, Result.FOUND))
    assert again.terminal is Terminal.BOUNDED_STOP
    for result, terminal in (
        (Result.UNKNOWN, Terminal.APORIA_UNDERDETERMINED),
        (Result.CONFLICT, Terminal.APORIA_CONTRADICTED),
    ):
        assert advance(found, answer(found, result)).terminal is terminal
    assert advance(found, answer(found, Result.INCOMPLETE)).operator is Operator.DISTINGUISH


@pytest.mark.parametrize("left_open", [{"open_questions": ["How long?"]}, {"premises": "assumed"}])
def test_what_is_left_open_keeps_it_from_being_resolved(left_open: dict[str, Any]) -> None:
    if left_open.get("premises"):
        grounded = {"statement": "It says x.", "kind": "inferred", "evidence_lines": [1]}
        assumed = {"statement": "All is well.", "kind": "assumption", "evidence_lines": []}
        left_open = {"premises": [grounded, assumed]}
    dialogue = begin(LENSES["meno"], MOST_TURNS)
    dialogue = advance(dialogue, answer(dialogue, **left_open))
    while dialogue.operator is not None:
        dialogue = advance(dialogue, answer(dialogue))
    assert dialogue.terminal is Terminal.APORIA_UNDERDETERMINED
    assert dialogue.reason == "every question was asked; 1 open issue"
    assert set(dialogue.profile.values()) == {"examined"}


def test_a_budget_that_is_spent_stops_it() -> None:
    assert led("sophist", *[None] * 6, turns=6).terminal is Terminal.BOUNDED_STOP
    one = led("sophist", None, turns=1)
    assert (one.terminal, one.reason) == (
        Terminal.BOUNDED_STOP,
        "all 1 turns are spent, and DIVIDE was to come",
    )
    # What ends it by itself is not a matter of the budget.
    assert led("sophist", Result.UNKNOWN, turns=1).terminal is Terminal.APORIA_UNDEFINED
    for turns in (0, 15):
        with pytest.raises(ValueError, match="not from 1 to 14"):
            begin(LENSES["meno"], turns)


def outcomes(operator: Operator) -> Iterator[tuple[Result, Verdict]]:
    for result, verdicts in results_of(operator).items():
        for verdict in sorted(verdicts):
            yield result, verdict


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(LENSES)), st.integers(1, MOST_TURNS), st.data())
def test_no_sequence_of_answers_goes_on_beyond_the_budget(lens: str, turns: int, data: st.DataObject) -> None:
    dialogue = begin(LENSES[lens], turns)
    for _ in range(turns):
        operator = dialogue.operator
        assert operator is not None
        # Success is drawn often, so that long dialogues are among them.
        result = data.draw(st.sampled_from([SUCCESS[operator]] * 3 + [r for r, _ in outcomes(operator)]))
        other: dict[str, Any] = {"open_questions": data.draw(st.sampled_from([[], ["Why?"]]))}
        if operator is Operator.DEFINE and result is not Result.UNKNOWN:
            other["answer_type"] = data.draw(st.sampled_from(["definition", "example"]))
        dialogue = advance(dialogue, answer(dialogue, result, **other))
        assert (dialogue.operator is None) == (dialogue.terminal is not None)
        assert dialogue.revisions <= 1
        if dialogue.terminal is not None:
            break
    assert dialogue.terminal is not None
    assert dialogue.reason
    for version in range(dialogue.version + 1):
        asked = [turn.operator for turn in dialogue.turns if turn.version == version]
        assert len(set(asked)) == len(asked)
    if dialogue.terminal is Terminal.RESOLVED:
        assert set(dialogue.profile.values()) == {"examined"}
        assert all(issue.state != "open" for issue in dialogue.issues)
