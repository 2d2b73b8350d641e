"""The numbers of the retention score, in both profiles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from castle.mind.consolidation.scoring import (
    Features,
    ProfileName,
    compat_threshold,
    forgotten_share,
    score,
    threshold,
)
from castle.search.retention import retention_factor


def features(
    valence: float = 0.0,
    outcome: float = math.nan,
    similar: float = 0.0,
    cosine: float = 1.0,
    hours: float = 1e6,
) -> Features:
    return Features(*(np.array([value]) for value in (valence, outcome, similar, cosine, hours)))


def total(profile: ProfileName, **known: float) -> float:
    return float(score(features(**known), profile).total[0])


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, 2.0), (100, -0.76), (357, 0.0), (1_000, 0.62), (2_000, 1.03), (5_000, 1.58), (10_000, 2.0),
     (20_000, 2.42), (100_000, 3.38)],
)  # fmt: skip
def test_the_threshold_of_compat_is_the_documented_one(count: int, expected: float) -> None:
    assert compat_threshold(count) == pytest.approx(expected, abs=0.005)
    assert threshold(np.zeros(5), count, "compat") == compat_threshold(count)


def test_compat_counts_its_weights_twice_and_a_mild_emotion_less_than_none() -> None:
    old = score(features(similar=1), "compat")
    assert float(old.emotion[0]) == pytest.approx(1.425)
    assert float(old.outcome[0]) == pytest.approx(1.2 * 0.36)
    assert float(old.repetition[0]) == pytest.approx(1 / 3)
    assert float(old.total[0]) == pytest.approx(2.19, abs=0.005)
    assert total("compat", similar=3) == pytest.approx(2.86, abs=0.005)
    for valence, worth in ((0.05, 0.28), (0.1, 0.55), (0.2, 1.04)):
        found = score(features(valence=-valence), "compat").emotion[0]
        assert found == pytest.approx(worth, abs=0.006)
    assert float(score(features(cosine=math.nan), "compat").novelty[0]) == pytest.approx(0.8 * 0.4)
    assert float(score(features(hours=168), "compat").recency[0]) == pytest.approx(1 / math.e)


def test_by_default_every_weight_counts_once() -> None:
    found = score(features(valence=1, outcome=-1, similar=9, cosine=0, hours=0))
    assert float(found.emotion[0]) == pytest.approx(1.5 * (2 / (1 + math.exp(-5)) - 1))
    assert [float(part[0]) for part in (found.outcome, found.repetition, found.novelty, found.recency)] == [
        pytest.approx(worth) for worth in (1.2, 1.0, 0.8, 1.0)
    ]
    assert total("default") == pytest.approx(0.95 + 0.36)


@pytest.mark.parametrize("name", ["valence", "outcome", "similar"])
def test_by_default_more_of_something_never_counts_less(name: str) -> None:
    values = [total("default", **{name: value}) for value in np.linspace(0, 1, 41)]
    assert values == sorted(values)
    assert total("default", valence=-0.4) == total("default", valence=0.4) > total("default")
    assert total("default", outcome=0.01) >= total("default")


@pytest.mark.parametrize(
    ("count", "share"), [(0, 0), (100, 0), (200, 0.03), (1_000, 0.1), (10_000, 0.2), (1_000_000, 0.4)]
)
def test_the_share_that_may_fade_grows_with_the_palace(count: int, share: float) -> None:
    assert forgotten_share(count) == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize("count", [100, 1_000, 10_000, 1_000_000])
def test_the_threshold_is_one_of_the_palace_itself(count: int) -> None:
    totals = np.linspace(1, 3, min(count, 10_000))
    least = threshold(totals, count)
    assert np.mean(totals < least) == pytest.approx(forgotten_share(count), abs=0.002)
    assert not np.any(np.full(100, 2.0) < threshold(np.full(100, 2.0), count))


def test_a_recall_counts_an_episode_by_its_score() -> None:
    assert retention_factor(None) == retention_factor(math.nan) == 1.0
    factors = [retention_factor(value) for value in (-1.0, 1.31, 2.0, 3.0, 3.31, 9.0)]
    assert factors == sorted(factors)
    assert (factors[0], factors[1], factors[-1]) == (0.85, 0.85, 1.0)
