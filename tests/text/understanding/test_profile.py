from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.text.understanding import understand

CATEGORIES = {
    "readability": (1, 6, 0.10),
    "structure": (1, 5, 0.15),
    "cognitive": (1, 7, 0.10),
    "semantic": (2, 6, 0.15),
    "testability": (3, 3, 0.20),
    "behavioral": (4, 4, 0.15),
    "depth": (5, 3, 0.15),
}
FRAGMENTS = (
    "FR-1 |REQ-22: |The user |must |shall not |if |when |save |data|. |! |\n|- |* |Given |200 ms|5-10|>= 3"
    "|`x`|```\n|<!--|-->|**|[a](b)|# |on |in case |error |on the |fast |漢字|é|\x00|\u2028|\r|\t|1."
    "|, |and |it "
).split("|")


def test_the_categories_and_weights() -> None:
    metrics = understand("").metrics
    assert len({metric.name for metric in metrics}) == len(metrics) == 34
    assert Counter(metric.layer for metric in metrics) == {1: 18, 2: 6, 3: 3, 4: 4, 5: 3}
    for name, (layer, count, weight) in CATEGORIES.items():
        members = [metric for metric in metrics if metric.category == name]
        assert len(members) == count
        assert {(metric.layer, metric.category_weight) for metric in members} == {(layer, weight)}
        assert math.fsum(metric.weight for metric in members) == pytest.approx(1)
    assert math.fsum(metric.weight * metric.category_weight for metric in metrics) == pytest.approx(1)


def test_overall_of_one_word_worked_out_by_hand() -> None:
    profile = understand("Go.")
    readability = 0.25 * 0.65 + 0.15 * (0.5 + (1 - 11.6 / 24) + (1 - 8.8709 / 24) + 0.5 + 0.5)
    structure = 0.15 * 0.5  # nothing is stated, and there is no modal verb
    cognitive = 0.20 * 0.05 + 0.15 * (1 - 0.5 / 1.5) + 0.15 * 0 + (0.15 + 0.15 + 0.10 + 0.10) * 1
    assert {c.name: pytest.approx(c.score) for c in profile.categories} == {
        "readability": readability,
        "structure": structure,
        "cognitive": cognitive,
        "semantic": 0,
        "testability": 0,
        "behavioral": 0,
        "depth": 0,
    }
    assert profile.overall == round(0.10 * readability + 0.15 * structure + 0.10 * cognitive, 4) == 0.1282
    assert (profile.words, profile.requirements) == (1, 0)


@pytest.mark.parametrize("text", ["", " \n\t", "...", "```\ncode only\n```", "<!-- only a comment -->", "!?"])
def test_where_there_is_nothing_to_measure_all_is_0(text: str) -> None:
    profile = understand(text)
    assert profile.overall == 0
    assert {(metric.raw, metric.score) for metric in profile.metrics} == {(0, 0)}


def test_a_text_that_pins_things_down_is_worth_more_than_talk() -> None:
    firm = (
        "- FR-1: When the user submits an invalid form, the system must return HTTP 400 within 200 ms.\n"
        "- FR-2: If the session expires, the server shall display an error message and must not store data.\n"
    )
    talk = "Well, you know how it is with these things. I guess we will just see how it goes, maybe."
    assert understand(firm).overall >= 0.60
    assert understand(talk).overall < 0.53


@given(st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join)))
def test_any_text_has_scores_within_0_and_1(text: str) -> None:
    profile = understand(text)
    assert all(0 <= metric.score <= 1 and math.isfinite(metric.raw) for metric in profile.metrics)
    assert all(0 <= category.score <= 1 for category in profile.categories)
    weighted = math.fsum(m.score * m.weight * m.category_weight for m in profile.metrics)
    assert profile.overall == pytest.approx(weighted, abs=5.1e-5)
    assert understand(text) == profile


@pytest.mark.parametrize(
    "unit", ["[", "`", "<!--", "```\n", "_a", "*", "1.", "9-", "A-", ".", "the x ", "on ", "\ud800", "x"]
)
def test_repetition_does_not_take_more_than_linear_time(unit: str) -> None:
    # What grows with the square of the length would run into the time limit of the test.
    assert 0 <= understand(unit * (500_000 // len(unit))).overall <= 1
