from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.search.candidates import Candidate
from castle.search.priors import recency, recency_factor

DAY = 86_400_000_000
NOW = 1_800_000_000_000_000


def test_the_factor_is_greatest_now_and_falls_to_one() -> None:
    assert recency_factor(0, 1.5, 90) == 1.5
    assert recency_factor(90, 1.5, 90) == pytest.approx(1 + 0.5 / math.e)
    assert recency_factor(20_000, 1.5, 90) == pytest.approx(1.0)
    assert recency_factor(-5, 1.5, 90) == 1.5
    assert recency_factor(3, 1.0, 90) == 1.0


def test_what_was_written_of_late_moves_up_as_far_as_its_strength() -> None:
    given_ = [Candidate("old", "1", 0.9), Candidate("new", "2", 0.8)]
    authored = {"old": NOW - 1000 * DAY, "new": NOW}
    full = recency(given_, authored, NOW, max_boost=1.5, tau_days=90, strength=1.0)
    assert [c.id for c in full] == ["new", "old"]
    assert [c.score for c in full] == pytest.approx([1.0, 0.9], abs=1e-3)
    assert full[0].boosts == {"recency": 1.5}
    weak = recency(given_, authored, NOW, max_boost=1.5, tau_days=90, strength=0.1)
    assert [c.id for c in weak] == ["old", "new"]
    assert weak[1].score == pytest.approx(0.8 * 1.5**0.1)


def test_a_drawer_without_a_time_keeps_its_score() -> None:
    (found,) = recency([Candidate("a", "1", 0.5)], {"a": 0}, NOW, max_boost=1.5, tau_days=90, strength=1.0)
    assert (found.score, dict(found.boosts)) == (0.5, {})


@given(st.floats(-1e6, 1e6), st.floats(1, 10), st.floats(1e-3, 1e6))
def test_the_factor_stays_in_its_bounds(age: float, most: float, tau: float) -> None:
    assert 1.0 <= recency_factor(age, most, tau) <= most
