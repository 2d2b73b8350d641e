from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castle.search.candidates import Candidate
from castle.search.infoweight import info_factor, info_weight


@pytest.mark.parametrize(
    ("novelty", "factor"),
    [(0.0, 0.5), (0.05, 0.75), (0.1, 1.0), (0.5, 1.0), (None, 1.0), (-0.01, 1.0), (math.nan, 1.0)]
    + [(-math.inf, 1.0), (math.inf, 1.0)],
)
def test_the_factor_by_hand(novelty: float | None, factor: float) -> None:
    assert info_factor(novelty, 0.10, 0.5) == pytest.approx(factor)


@pytest.mark.parametrize("threshold", [0.0, -1.0])
def test_without_a_threshold_nothing_happens(threshold: float) -> None:
    assert info_factor(0.0, threshold, 0.5) == 1.0


def test_a_stale_drawer_steps_behind_and_says_why() -> None:
    candidates = [Candidate("twin", "s", 0.8), Candidate("first", "s", 0.7), Candidate("none", "s", 0.3)]
    weighed = info_weight(candidates, {"twin": 0.0, "first": 1.0})
    assert [(c.id, c.score) for c in weighed] == [("first", 0.7), ("twin", 0.4), ("none", 0.3)]
    assert [dict(c.boosts) for c in weighed] == [{"info-weight": 1.0}, {"info-weight": 0.5}, {}]
    assert [c.stages["info-weight"].rank for c in weighed] == [1, 2, 3]


def test_a_score_below_zero_is_not_raised() -> None:
    assert [c.score for c in info_weight([Candidate("a", "s", -0.5)], {"a": 0.0})] == [-0.5]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    scores=st.lists(st.floats(-1, 1), max_size=8),
    novelty=st.lists(st.none() | st.floats(), min_size=8, max_size=8),
    threshold=st.floats(-1, 1),
    min_factor=st.floats(0, 1),
)
def test_nothing_is_dropped_or_raised(
    scores: list[float], novelty: list[float | None], threshold: float, min_factor: float
) -> None:
    candidates = [Candidate(str(n), "s", score) for n, score in enumerate(scores)]
    known = {str(n): value for n, value in enumerate(novelty)}
    weighed = info_weight(candidates, known, threshold=threshold, min_factor=min_factor)
    assert {c.id for c in weighed} == {c.id for c in candidates}
    before = {c.id: c.score for c in candidates}
    assert all(c.score <= before[c.id] for c in weighed)
    assert all(c.score >= min(before[c.id], before[c.id] * min_factor) for c in weighed)
