from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.search import quality as stage
from castle.search.candidates import Candidate
from castle.search.options import QualityTuning
from castle.search.quality import overall, quality, tier_of

TUNING = QualityTuning()
FIRM = (
    "- FR-1: When the user submits an invalid form, the system must return HTTP status 400 within 200 ms.\n"
    "- FR-2: If the session expires, the server shall display an error and must not store data.\n"
)
TALK = "Well, you know how it is. I guess we will see."


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    stage._known.clear()
    stage._said.clear()
    yield
    stage._known.clear()


def _candidate(name: str, score: float) -> Candidate:
    return Candidate(id=name, sha256=name, score=score)


def _measured(monkeypatch: pytest.MonkeyPatch, values: dict[str, float]) -> None:
    monkeypatch.setattr(stage, "overall", values.__getitem__)


def test_the_defaults() -> None:
    assert (TUNING.threshold_high, TUNING.boost_high) == (0.60, 1.25)
    assert (TUNING.threshold_medium, TUNING.boost_medium) == (0.53, 1.15)


@pytest.mark.parametrize(
    ("score", "tier", "factor"),
    [
        (1.0, "high", 1.25),
        (0.60, "high", 1.25),
        (0.5999, "medium", 1.15),
        (0.53, "medium", 1.15),
        (0.5299, None, 1.0),
        (0.0, None, 1.0),
    ],
)
def test_thresholds_belong_to_their_tier(score: float, tier: str | None, factor: float) -> None:
    assert tier_of(score, TUNING) == (tier, factor)


def test_real_texts_are_lifted_by_their_tier() -> None:
    talk, firm = quality(
        [_candidate("talk", 0.7), _candidate("firm", 0.5)], {"talk": TALK, "firm": FIRM}, TUNING, 1.0
    )
    assert (firm.id, firm.quality_tier, firm.quality_boost) == ("firm", "high", 1.25)
    assert firm.score == pytest.approx(0.5 * 1.25)
    assert firm.score_pre_quality == 0.5
    assert firm.boosts == {"quality": 1.25}
    assert firm.quality_score is not None and 0.60 <= firm.quality_score <= 1
    assert (talk.quality_tier, talk.quality_boost, talk.score) == (None, 1.0, 0.7)
    assert (talk.stages["quality"].rank, firm.stages["quality"].rank) == (1, 2)


def test_a_lift_can_change_the_order() -> None:
    found = quality(
        [_candidate("talk", 0.7), _candidate("firm", 0.6)], {"talk": TALK, "firm": FIRM}, TUNING, 1.0
    )
    assert [c.id for c in found] == ["firm", "talk"]


def test_the_strength_bounds_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    _measured(monkeypatch, {"x": 0.7})
    (half,) = quality([_candidate("x", 0.4)], {"x": "x"}, TUNING, 0.5)
    assert half.quality_boost == half.boosts["quality"] == pytest.approx(math.sqrt(1.25))
    assert half.score == pytest.approx(0.4 * math.sqrt(1.25))
    (none,) = quality([_candidate("x", 0.4)], {"x": "x"}, TUNING, 0.0)
    assert (none.quality_boost, none.score, none.quality_tier) == (1.0, 0.4, "high")


def test_the_cap_keeps_the_order_of_uncapped_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    _measured(monkeypatch, {"a": 0.1, "b": 0.9, "c": 0.9})
    found = quality(
        [_candidate("a", 1.0), _candidate("b", 0.95), _candidate("c", 0.9)],
        {name: name for name in "abc"},
        TUNING,
        1.0,
    )
    assert [(c.id, c.score) for c in found] == [("b", 1.0), ("c", 1.0), ("a", 1.0)]


def test_equal_scores_keep_the_order_given(monkeypatch: pytest.MonkeyPatch) -> None:
    _measured(monkeypatch, {"same": 0.55})
    given_ = [_candidate(name, 0.5) for name in "zay"]
    assert [c.id for c in quality(given_, {name: "same" for name in "zay"}, TUNING, 1.0)] == list("zay")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_leaves_the_candidate_neutral(
    monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    _measured(monkeypatch, {"bad": value, "good": 0.9})
    notes: list[str] = []
    found = quality(
        [_candidate("bad", 0.5), _candidate("good", 0.4)],
        {"bad": "bad", "good": "good"},
        TUNING,
        1.0,
        notes.append,
    )
    bad = next(c for c in found if c.id == "bad")
    assert (bad.score, bad.quality_score, bad.quality_tier, bad.quality_boost) == (0.5, None, None, 1.0)
    assert bad.score_pre_quality == 0.5 and "quality" not in bad.boosts
    assert next(c for c in found if c.id == "good").score == pytest.approx(0.5)
    assert len(notes) == 1 and "bad" in notes[0] and "ValueError" in notes[0]


def test_each_kind_of_failure_is_noted_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str) -> float:
        raise ZeroDivisionError("nothing to divide by") if text == "zero" else RecursionError("too deep")

    monkeypatch.setattr(stage, "overall", fail)
    given_ = [_candidate(name, 0.5) for name in "abc"]
    texts = {"a": "zero", "b": "zero", "c": "deep"}
    notes: list[str] = []
    found = quality(given_, texts, TUNING, 1.0, notes.append)
    assert [(c.id, c.score) for c in found] == [("a", 0.5), ("b", 0.5), ("c", 0.5)]
    assert len(notes) == 2
    for _ in range(2):
        quality(given_, texts, TUNING, 1.0)
    assert len(caplog.records) == 2


def test_a_candidate_without_text_is_neutral_and_no_failure() -> None:
    notes: list[str] = []
    (found,) = quality([_candidate("x", 0.5)], {}, TUNING, 1.0, notes.append)
    assert (found.score, found.quality_score, found.score_pre_quality, notes) == (0.5, None, 0.5, [])


def test_nothing_in_nothing_out() -> None:
    assert quality([], {}, TUNING, 1.0) == []


def test_a_text_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = overall(FIRM)
    monkeypatch.setattr(stage, "understand", None)
    assert overall(FIRM) == first


def test_no_more_is_remembered_than_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "REMEMBERED", 2)
    for text in ("one", "two", "one", "three"):
        overall(text)
    assert len(stage._known) == 2
    monkeypatch.setattr(stage, "understand", None)
    overall("one")  # looked at last before "three", so "two" was forgotten
    overall("three")


def test_half_a_character_is_a_text() -> None:
    assert 0 <= overall("\ud800 half") <= 1


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([FIRM, TALK, "", "漢字"])), max_size=8),
    st.floats(0, 1),
)
def test_scores_stay_within_0_and_1_and_nobody_is_lost(
    entries: list[tuple[float, str]], strength: float
) -> None:
    candidates = [_candidate(str(n), score) for n, (score, _) in enumerate(entries)]
    texts = {str(n): text for n, (_, text) in enumerate(entries)}
    found = quality(candidates, texts, TUNING, strength)
    assert sorted(c.id for c in found) == sorted(texts)
    assert all(0 <= c.score <= 1 for c in found)
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
