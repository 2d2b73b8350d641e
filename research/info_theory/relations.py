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
    block_counts,
    cluster_counts,
    correlation_p,
    interval,
    kruskal,
    partial,
    pearson,
    spearman,
)

if TYPE_CHECKING:
    from research.info_theory.study import Table

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
    table: Table, judged: Mapping[str, int], resamples: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return rho of A and B with C, over the drawers (by row) that a model has judged."""
    if len(judged) < 10:
        return {}
    rows: Ints = np.array(sorted(int(row) for row in judged), dtype=np.int64)
    c = np.array([float(judged[str(row)]) for row in rows])
    drawn = block_counts(table.palace[rows], resamples, rng)
    found = {}
    for letter, values in (("A", table.a[rows]), ("B", table.b[rows])):
        x, y = Ranked(values), Ranked(c)
        found[f"{letter},C"] = _entry(values, c, x, y, np.array([spearman(x, y, counts) for counts in drawn]))
    return found


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
