"""How the estimators agree with each other, and how they differ between kinds of sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from research.info_theory.ranks import (
    Floats,
    Ints,
    Ranked,
    cluster_counts,
    correlation_p,
    interval,
    kruskal,
    partial,
    pearson,
    sample_counts,
    spearman,
)

if TYPE_CHECKING:
    from research.info_theory.study import Table

SURPRISE_PAIRS = ("A,C", "B,C", "A,S", "B,S", "C,S")
FEWEST_JUDGED = 10
"""Drawers from which on a correlation with what a model says is told."""
FEWEST_PALACES = 10
"""Palaces from which on resampling whole palaces says something."""


def heterogeneity(table: Table, rows: NDArray[np.bool_], resamples: Iterable[Floats]) -> dict[str, Any]:
    """Compare the strata and the roles by both estimators, with an interval for epsilon squared."""
    found: dict[str, Any] = {}
    for by, labels in (("stratum", table.stratum[rows]), ("role", table.role[rows])):
        names, groups = np.unique(labels, return_inverse=True)
        if len(names) < 2:
            continue
        for letter, values in (("A", table.a[rows]), ("B", table.b[rows])):
            ranked = Ranked(values)
            test = kruskal(ranked, groups.astype(np.int64))
            drawn = [kruskal(ranked, groups.astype(np.int64), counts).epsilon2 for counts in resamples]
            low, high = interval(drawn)
            found[f"{letter} by {by}"] = {
                "h": test.h,
                "df": test.df,
                "p": test.p,
                "epsilon2": test.epsilon2,
                "low": low,
                "high": high,
                "n": test.n,
                "medians": {str(name): float(np.median(values[groups == i])) for i, name in enumerate(names)},
            }
    return found


def correlations(
    table: Table,
    rows: NDArray[np.bool_],
    resamples: Iterable[Floats],
    clusters: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return rho of each pair with its intervals, r, and rho with the number of earlier drawers taken out."""
    columns = {
        "A": table.a[rows],
        "B": table.b[rows],
        "N": table.count[rows].astype(np.float64),
        "length": table.chars[rows].astype(np.float64),
    }
    ranked = {name: Ranked(values) for name, values in columns.items()}
    found: dict[str, Any] = {}
    by_n = {name: spearman(ranked[name], ranked["N"]) for name in ("A", "B", "length")}
    for x, y in (("A", "B"), ("A", "N"), ("B", "N"), ("A", "length"), ("B", "length")):
        drawn = np.array([spearman(ranked[x], ranked[y], counts) for counts in resamples])
        found[f"{x},{y}"] = _entry(columns[x], columns[y], ranked[x], ranked[y], drawn)
        if y != "N":
            found[f"{x},{y}"]["partial"] = partial(found[f"{x},{y}"]["rho"], by_n[x], by_n[y])
    if len(table.names) >= FEWEST_PALACES:
        counts = cluster_counts(table.palace[rows], clusters, rng)
        low, high = interval([spearman(ranked["A"], ranked["B"], one) for one in counts])
        found["A,B"] |= {"cluster_low": low, "cluster_high": high}
    found["A,B"]["strata"] = {
        str(name): spearman(Ranked(columns["A"][mine]), Ranked(columns["B"][mine]))
        for name in np.unique(table.stratum[rows])
        for mine in [table.stratum[rows] == name]
    }
    return found


def with_surprise(
    table: Table, judged: Mapping[str, Mapping[str, float]], resamples: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return rho of A and B with what a model says of drawers (by row), and of what it says with itself.

    Pairs of which one does not vary are left out, and so are those of fewer than FEWEST_JUDGED drawers.
    """
    found: dict[str, Any] = {}
    for x, y in (pair.split(",") for pair in SURPRISE_PAIRS):
        both = set.intersection(*(set(judged.get(name, {})) for name in (x, y) if name not in ("A", "B")))
        rows: Ints = np.array(sorted(int(row) for row in both), dtype=np.int64)
        if len(rows) < FEWEST_JUDGED:
            continue
        first, second = (_column(table, judged, name, rows) for name in (x, y))
        if np.ptp(first) == 0 or np.ptp(second) == 0:
            continue
        n, length = (Ranked(values[rows].astype(np.float64)) for values in (table.count, table.chars))
        left, right = Ranked(first), Ranked(second)
        counted = sample_counts(table.stratum[rows], resamples, rng)
        drawn = np.array([spearman(left, right, counts) for counts in counted])
        entry = _entry(first, second, left, right, drawn)
        for key, other in (("partial", n), ("partial_length", length)):
            entry[key] = partial(entry["rho"], spearman(left, other), spearman(right, other))
        found[f"{x},{y}"] = entry
    return found


def _column(table: Table, judged: Mapping[str, Mapping[str, float]], name: str, rows: Ints) -> Floats:
    if name in ("A", "B"):
        return (table.a if name == "A" else table.b)[rows]
    return np.array([judged[name][str(row)] for row in rows])


def _entry(x: Floats, y: Floats, ranked_x: Ranked, ranked_y: Ranked, drawn: Floats) -> dict[str, Any]:
    rho = spearman(ranked_x, ranked_y)
    low, high = interval(drawn.tolist())
    r = pearson(x, y)
    return {
        "rho": rho,
        "low": low,
        "high": high,
        "r": r,
        "shared": rho**2,
        "p": correlation_p(rho, drawn) if math.isfinite(rho) else math.nan,
        "n": len(x),
    }
