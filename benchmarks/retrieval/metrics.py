"""Measures of a ranked list against what should be found, and of confidence against there being an answer.

A ranking is a list of the names that its results stand for. The ideal of nDCG comes from every gold item,
found or not (Järvelin and Kekäläinen, 2002).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RESAMPLES = 2000
DEPTHS = (1, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Judged:
    """One ranked list: ``ranks`` (from 1) of the gold items that were found, of ``gold`` there are."""

    ranks: tuple[int, ...]
    gold: int


def judged(found: Sequence[str], gold: frozenset[str]) -> Judged:
    """Compare a ranking with the gold items; a name that comes twice counts where it came first."""
    first: dict[str, int] = {}
    for rank, name in enumerate(found, start=1):
        first.setdefault(name, rank)
    return Judged(tuple(sorted(first[name] for name in gold if name in first)), len(gold))


def recall_any(item: Judged, k: int) -> float:
    """Return 1 if any gold item is among the first k."""
    return float(any(rank <= k for rank in item.ranks))


def recall_all(item: Judged, k: int) -> float:
    """Return 1 if every gold item is among the first k."""
    return float(sum(rank <= k for rank in item.ranks) == item.gold)


def ndcg(item: Judged, k: int) -> float:
    """Return the discounted gain of the first k beside that of the best possible list of k."""
    gain = sum(1 / math.log2(rank + 1) for rank in item.ranks if rank <= k)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(item.gold, k) + 1))


def reciprocal_rank(item: Judged, k: int) -> float:
    """Return 1 over the rank of the first gold item, 0 beyond k."""
    return next((1 / rank for rank in item.ranks if rank <= k), 0.0)


Measure = Callable[[Judged], float]


def measures(depth: int) -> Mapping[str, Measure]:
    """Return every measure that a list of ``depth`` results allows, by its name in the reports."""
    found: dict[str, Measure] = {"R@1": lambda item: recall_any(item, 1)}
    for k in (k for k in DEPTHS if k <= depth):
        found[f"recall_any@{k}"] = lambda item, k=k: recall_any(item, k)  # type: ignore[misc]
        found[f"recall_all@{k}"] = lambda item, k=k: recall_all(item, k)  # type: ignore[misc]
    found[f"NDCG@{depth}"] = lambda item: ndcg(item, depth)
    found[f"MRR@{depth}"] = lambda item: reciprocal_rank(item, depth)
    return found


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` questions with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean and its interval by the percentile bootstrap over questions (Efron, 1979)."""
    if not values:
        return Estimate(math.nan, math.nan, math.nan, 0)
    draw, count = random.Random(seed), len(values)
    means = sorted(math.fsum(draw.choices(values, k=count)) / count for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return Estimate(math.fsum(values) / count, low, high, count)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how often a positive is above a negative, ties counting half; NaN without either."""
    if not positive or not negative:
        return math.nan
    ordered = sorted(negative)
    return math.fsum(_above(ordered, value) for value in positive) / (len(positive) * len(negative))


def _above(ordered: Sequence[float], value: float) -> float:
    from bisect import bisect_left, bisect_right

    left, right = bisect_left(ordered, value), bisect_right(ordered, value)
    return left + (right - left) / 2
