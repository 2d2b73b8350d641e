from __future__ import annotations

import math

import numpy as np
import pytest

from research.info_theory import ranks
from research.info_theory.ranks import Ranked


def test_ranks_of_a_weighted_sample_are_those_of_the_written_out_one() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 6, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    counts = rng.integers(0, 4, 40).astype(float)
    long_x, long_y = np.repeat(x, counts.astype(int)), np.repeat(y, counts.astype(int))
    assert ranks.spearman(Ranked(x), Ranked(y), counts) == pytest.approx(
        ranks.spearman(Ranked(long_x), Ranked(long_y))
    )
    groups = (x > 2).astype(np.int64)
    long = ranks.kruskal(Ranked(long_y), np.repeat(groups, counts.astype(int)))
    short = ranks.kruskal(Ranked(y), groups, counts)
    assert [short.h, short.epsilon2, short.n] == pytest.approx([long.h, long.epsilon2, long.n])


def test_by_hand() -> None:
    x = np.array([1.0, 2, 2, 4])
    assert Ranked(x).ranks(np.ones(4)).tolist() == [1, 2.5, 2.5, 4]
    assert ranks.spearman(Ranked(x), Ranked(-x)) == pytest.approx(-1)
    assert math.isnan(ranks.pearson(x, np.ones(4)))
    # Without ties and with groups {1, 2}, {3, 4}: H = 12/20 (9/2 + 49/2) - 15 = 2.4.
    test = ranks.kruskal(Ranked(np.array([1.0, 2, 3, 4])), np.array([0, 0, 1, 1]))
    assert (test.df, test.n) == (1, 4)
    assert test.h == pytest.approx(2.4)
    assert test.epsilon2 == pytest.approx(2.4 / 3)
    assert test.p == pytest.approx(math.erfc(math.sqrt(1.2)))
    assert ranks.kruskal(Ranked(np.ones(4)), np.array([0, 0, 1, 1])).p == 1


@pytest.mark.parametrize(
    ("value", "df", "p"),
    [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (7.814728, 3, 0.05), (18.307038, 10, 0.05)],
)
def test_chi_squared_as_in_the_tables(value: float, df: int, p: float) -> None:
    assert ranks.chi2_above(value, df) == pytest.approx(p, abs=1e-7)
    assert ranks.chi2_above(1e5, df) == 0
    assert ranks.chi2_above(0, df) == 1


def test_partial_correlation() -> None:
    assert ranks.partial(0.5, 0.0, 0.0) == 0.5
    assert ranks.partial(0.25, 0.5, 0.5) == pytest.approx(0)
    assert math.isnan(ranks.partial(0.5, 1.0, 0.5))


def test_benjamini_and_hochberg_as_in_their_paper() -> None:
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    p += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    found = ranks.benjamini_hochberg({str(n): value for n, value in enumerate(p)})
    assert [stands for _, stands in found.values()].count(True) == 4
    assert found["0"][0] == pytest.approx(0.0015)
    values = [adjusted for adjusted, _ in found.values()]
    assert values == sorted(values)
    assert ranks.benjamini_hochberg({"a": math.nan, "b": 0.01})["a"][1] is False


@pytest.mark.parametrize(("n", "length"), [(20, 10), (200, 40), (5000, 100)])
def test_length_of_a_block(n: int, length: int) -> None:
    assert ranks.block_length(n) == length


def test_blocks_stay_in_their_source_and_every_source_keeps_its_weight() -> None:
    sources = np.repeat([0, 1, 2], [100, 60, 5])
    drawn = ranks.block_counts(sources, 50, np.random.default_rng(3))
    for counts in drawn:
        assert counts[sources == 0].reshape(5, 20).std(axis=1).max() == 0
        assert [counts[sources == n].sum() for n in range(3)] == [100, 60, 5]
    again = ranks.block_counts(sources, 50, np.random.default_rng(3))
    assert all((a == b).all() for a, b in zip(drawn, again, strict=True))
    assert len({tuple(counts) for counts in drawn}) > 40


def test_whole_sources_are_drawn_together() -> None:
    sources = np.repeat([0, 1, 2, 3], 5)
    for counts in ranks.cluster_counts(sources, 20, np.random.default_rng(3)):
        assert counts.reshape(4, 5).std(axis=1).max() == 0
        assert counts.sum() == 20


def test_single_rows_are_drawn_within_their_stratum() -> None:
    strata = np.array(["a", "b", "a", "b", "b", "a", "b"])
    drawn = list(ranks.sample_counts(strata, 50, np.random.default_rng(4)))
    for counts in drawn:
        assert counts[strata == "a"].sum() == 3
        assert counts[strata == "b"].sum() == 4
    assert len({tuple(counts) for counts in drawn}) > 20


def test_an_interval_covers_what_it_should() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(60):
        x = rng.standard_normal(200)
        y = 0.6 * x + 0.8 * rng.standard_normal(200)
        drawn = ranks.block_counts(np.zeros(200, dtype=np.int64), 60, rng)
        low, high = ranks.interval([ranks.pearson(x, y, counts) for counts in drawn])
        held += low <= 0.6 <= high
    assert held > 36


def test_p_of_a_correlation() -> None:
    around_zero = np.linspace(-0.2, 0.2, 100)
    assert ranks.correlation_p(0.0, around_zero) == 1
    assert ranks.correlation_p(0.9, around_zero + 0.7) < 1e-6
    assert math.isnan(ranks.correlation_p(0.5, np.full(10, 0.5)))


@pytest.mark.extras
def test_as_scipy_has_it() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 20, 300).astype(float), rng.integers(0, 20, 300).astype(float)
    groups = rng.integers(0, 4, 300)
    assert ranks.spearman(Ranked(x), Ranked(y)) == pytest.approx(stats.spearmanr(x, y).statistic)
    theirs = stats.kruskal(*(x[groups == n] for n in range(4)))
    ours = ranks.kruskal(Ranked(x), groups)
    assert (ours.h, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    for df in (1, 2, 5, 8):
        assert ranks.chi2_above(7.5, df) == pytest.approx(stats.chi2.sf(7.5, df))
    p = rng.random(30) ** 3
    adjusted = ranks.benjamini_hochberg({str(n): float(value) for n, value in enumerate(p)})
    assert [value for value, _ in adjusted.values()] == pytest.approx(stats.false_discovery_control(p))
