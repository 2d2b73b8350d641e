"""Rank statistics with whole-number weights: a resample is a vector of counts, and nothing is copied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ranked:
    """Values with their order, worked out once for every resample to come."""

    values: Floats

    @cached_property
    def _ties(self) -> tuple[Ints, int]:
        distinct, place = np.unique(self.values, return_inverse=True)
        return place.astype(np.int64), len(distinct)

    def ranks(self, counts: Floats) -> Floats:
        """Return the mid-rank of each value in the sample that holds it ``counts`` times."""
        place, distinct = self._ties
        size = np.bincount(place, weights=counts, minlength=distinct)
        below = np.cumsum(size) - size
        found: Floats = (below + (size + 1) / 2)[place]
        return found

    def tie_term(self, counts: Floats) -> float:
        """Return the sum of t^3 - t over the sizes t of groups of equal values."""
        place, distinct = self._ties
        size = np.bincount(place, weights=counts, minlength=distinct)
        return float((size**3 - size).sum())


def pearson(x: Floats, y: Floats, counts: Floats | None = None) -> float:
    """Return the correlation of x and y, each pair counted so many times; NaN where one does not vary."""
    weight = np.ones(len(x)) if counts is None else counts
    total = weight.sum()
    dx, dy = x - (weight @ x) / total, y - (weight @ y) / total
    scale = math.sqrt((weight @ dx**2) * (weight @ dy**2))
    return float((weight * dx) @ dy) / scale if scale > 0 else math.nan


def spearman(x: Ranked, y: Ranked, counts: Floats | None = None) -> float:
    """Return Spearman's rho with mid-ranks for ties."""
    weight = np.ones(len(x.values)) if counts is None else counts
    return pearson(x.ranks(weight), y.ranks(weight), weight)


def partial(xy: float, xz: float, yz: float) -> float:
    """Return the correlation of x and y with what both owe to z taken out (first order)."""
    scale = math.sqrt(max(0.0, (1 - xz**2) * (1 - yz**2)))
    return (xy - xz * yz) / scale if scale > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Kruskal:
    """The test of Kruskal and Wallis (1952): H corrected for ties, degrees of freedom, p, epsilon squared."""

    h: float
    df: int
    p: float
    epsilon2: float
    n: int


def kruskal(values: Ranked, groups: Ints, counts: Floats | None = None) -> Kruskal:
    """Compare the groups, numbered from 0; epsilon squared is H (n + 1) / (n^2 - 1), that is H / (n - 1)."""
    weight = np.ones(len(groups)) if counts is None else counts
    ranks = values.ranks(weight)
    size = np.bincount(groups, weights=weight)
    held = size > 0
    sums = np.bincount(groups, weights=weight * ranks)
    n = float(size.sum())
    raw = 12 / (n * (n + 1)) * float((sums[held] ** 2 / size[held]).sum()) - 3 * (n + 1)
    correction = 1 - values.tie_term(weight) / (n**3 - n)
    h = raw / correction if correction > 0 else 0.0
    df = int(held.sum()) - 1
    return Kruskal(h, df, chi2_above(h, df), h / (n - 1), int(n))


def chi2_above(value: float, df: int) -> float:
    """Return the chance of chi-squared with whole ``df`` above ``value`` (Abramowitz, Stegun 26.4.4-5)."""
    if value <= 0 or df < 1:
        return 1.0
    half = value / 2
    start, found = (0.0, 0.0) if df % 2 == 0 else (0.5, math.erfc(math.sqrt(half)))
    for step in range(df // 2):
        power = start + step
        found += math.exp(power * math.log(half) - half - math.lgamma(power + 1))
    return min(1.0, found)


def correlation_p(rho: float, resamples: Floats) -> float:
    """Return the two-sided p that rho is 0, from the spread of Fisher's z over the resamples."""
    z = np.arctanh(np.clip(resamples[np.isfinite(resamples)], -0.9999999, 0.9999999))
    if len(z) < 2 or not math.isfinite(rho) or np.ptp(z) == 0:
        return math.nan
    return math.erfc(abs(math.atanh(max(-0.9999999, min(0.9999999, rho)))) / z.std(ddof=1) / math.sqrt(2))


def benjamini_hochberg(p: Mapping[str, float], q: float = 0.05) -> dict[str, tuple[float, bool]]:
    """Return each test's adjusted p and whether it stands at false discovery rate ``q``; NaN never does.

    Adjusted p are made monotone from the largest down (Benjamini and Hochberg, 1995).
    """
    known = sorted((value, name) for name, value in p.items() if not math.isnan(value))
    adjusted: dict[str, float] = {}
    best = 1.0
    for place in range(len(known), 0, -1):
        value, name = known[place - 1]
        best = min(best, value * len(known) / place)
        adjusted[name] = best
    return {name: (adjusted.get(name, math.nan), adjusted.get(name, 1.0) <= q) for name in p}


# Resampling


def block_length(n: int) -> int:
    """Return the length of a block for a source of n drawers: a fifth, between 10 and 100."""
    return max(10, min(100, n // 5))


@dataclass(frozen=True, slots=True)
class Resamples:
    """How often every drawer is in each resample: ``drawn`` for each block, ``block`` for each drawer."""

    drawn: NDArray[np.int16]
    block: Ints

    def __iter__(self) -> Iterator[Floats]:
        """Yield the counts of one resample after another; they are made as they are needed."""
        return (counts[self.block].astype(np.float64) for counts in self.drawn)


def block_counts(sources: Ints, resamples: int, rng: np.random.Generator) -> Resamples:
    """Draw resamples of blocks, source by source.

    Drawers come in order of filing within each source. A source is cut into blocks of neighbours, and as many
    of its own blocks are drawn as it has: no block crosses from one source to another, and every source keeps
    its weight.
    """
    block = np.zeros(len(sources), dtype=np.int64)
    first, size = [], []
    total = 0
    for source in np.unique(sources):
        rows = np.flatnonzero(sources == source)
        number = max(1, round(len(rows) / block_length(len(rows))))
        block[rows] = total + np.arange(len(rows)) * number // len(rows)
        first += [total] * number
        size += [number] * number
        total += number
    starts, sizes = np.array(first, dtype=np.int64), np.array(size)
    drawn = np.empty((resamples, total), dtype=np.int16)
    for counts in drawn:
        counts[:] = np.bincount(starts + (rng.random(total) * sizes).astype(np.int64), minlength=total)
    return Resamples(drawn, block)


def cluster_counts(sources: Ints, resamples: int, rng: np.random.Generator) -> Resamples:
    """Draw resamples of whole sources."""
    _, place = np.unique(sources, return_inverse=True)
    total = int(place.max()) + 1
    drawn = np.empty((resamples, total), dtype=np.int16)
    for counts in drawn:
        counts[:] = np.bincount(rng.integers(0, total, total), minlength=total)
    return Resamples(drawn, place.astype(np.int64))


def sample_counts(strata: NDArray[np.str_], resamples: int, rng: np.random.Generator) -> Resamples:
    """Draw resamples of single rows within each stratum, for rows that were drawn at random from each."""
    _, place = np.unique(strata, return_inverse=True)
    drawn = np.zeros((resamples, len(strata)), dtype=np.int16)
    for rows in (np.flatnonzero(place == number) for number in range(int(place.max()) + 1)):
        for counts in drawn:
            counts[rows] = np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows))
    return Resamples(drawn, np.arange(len(strata)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile interval of what is finite."""
    found = np.asarray([value for value in values if math.isfinite(value)])
    if not len(found):
        return math.nan, math.nan
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)
