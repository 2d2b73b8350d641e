"""Tables of the results, as rows, as CSV, as LaTeX and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from research.info_theory.relations import SURPRISE_PAIRS

Rows = list[list[str]]
Results = Mapping[str, Any]


def data(results: Results) -> Rows:
    """What was studied."""
    rows = [["data", "palaces", "sessions", "drawers", "distinct texts", "with B", "A median", "A below .10"]]
    for name, one in results["datasets"].items():
        told = one["describe"]
        rows.append(
            [
                name,
                str(told["palaces"]),
                str(told["sessions"]),
                str(told["drawers"]),
                str(told["distinct_texts"]),
                str(told["B"]["n"]),
                f"{told['A']['median']:.3f}",
                f"{100 * told['A']['low']:.1f} %",
            ]
        )
    return rows


def correlations(results: Results) -> Rows:
    """How the estimators go together."""
    rows = [["data", "pair", "n", "rho", "95 % (blocks)", "95 % (palaces)", "r", "rho given N", "adjusted p"]]
    for name, one in results["datasets"].items():
        for pair, entry in one["correlations"].items():
            if pair in SURPRISE_PAIRS:
                continue
            whole = "–"
            if entry.get("cluster_low") is not None:
                whole = f"[{entry['cluster_low']:.4f}, {entry['cluster_high']:.4f}]"
            rows.append(
                [
                    name,
                    pair,
                    str(entry["n"]),
                    f"{entry['rho']:.4f}",
                    f"[{entry['low']:.4f}, {entry['high']:.4f}]",
                    whole,
                    f"{entry['r']:.4f}",
                    "–" if entry.get("partial") is None else f"{entry['partial']:.4f}",
                    _p(results["tests"][f"{name}: {pair}"]["adjusted"]),
                ]
            )
    return rows


def surprise(results: Results) -> Rows:
    """How what a model says goes together with A and B, over the drawers that it judged."""
    rows = [["data", "pair", "n", "rho", "95 % (drawers)", "r", "rho given N", "given length", "adjusted p"]]
    for name, one in results["datasets"].items():
        for pair in SURPRISE_PAIRS:
            entry = one["correlations"].get(pair)
            if entry is not None:
                rows.append(
                    [
                        name,
                        pair,
                        str(entry["n"]),
                        f"{entry['rho']:.3f}",
                        f"[{entry['low']:.3f}, {entry['high']:.3f}]",
                        *(f"{entry[key]:.3f}" for key in ("r", "partial", "partial_length")),
                        _p(results["tests"][f"{name}: {pair}"]["adjusted"]),
                    ]
                )
    return rows


def fits(results: Results) -> Rows:
    """Which curve fits the fall of B."""
    heads = ["data", "stratum", "bins", "first", "last", "best", "AIC power - exp.", "AIC power+floor - exp."]
    rows = [[*heads, "weight of exp.", "tau", "floor", "N*", "mixed scales"]]
    for name, one in results["datasets"].items():
        for stratum, entry in one["fit-decay"]["B"].items():
            if entry is None:
                rows.append([name, stratum, *["–"] * (len(rows[0]) - 2)])
                continue
            curve = entry["fits"]["exponential"]
            rows.append(
                [
                    name,
                    stratum,
                    str(entry["bins"]),
                    f"{entry['first']:.3f}",
                    f"{entry['last']:.3f}",
                    entry["winner"],
                    f"{entry['delta']:.1f}",
                    f"{entry['delta_with_floor']:.1f}",
                    f"{curve['weight']:.3f}",
                    f"{curve['parameters']['tau']:.0f} [{_edges(curve['intervals']['tau'], 0)}]",
                    f"{curve['parameters']['c']:.3f} [{_edges(curve['intervals']['c'], 3)}]",
                    "–" if entry["saturation"] is None else f"{entry['saturation']:.0f}",
                    f"{entry['mixed_delta']:.1f}",
                ]
            )
    return rows


def heterogeneity(results: Results) -> Rows:
    """How strata and roles differ."""
    rows = [["data", "by", "n", "H", "df", "epsilon squared", "95 %", "adjusted p", "medians"]]
    for name, one in results["datasets"].items():
        for by, entry in one["heterogeneity"].items():
            rows.append(
                [
                    name,
                    by,
                    str(entry["n"]),
                    f"{entry['h']:.1f}",
                    str(entry["df"]),
                    f"{entry['epsilon2']:.4f}",
                    f"[{entry['low']:.4f}, {entry['high']:.4f}]",
                    _p(results["tests"][f"{name}: {by}"]["adjusted"]),
                    ", ".join(f"{label} {value:.3f}" for label, value in entry["medians"].items()),
                ]
            )
    return rows


def downstream(results: Results) -> Rows:
    """What leaving out and demoting does to finding."""
    measures = ("recall_any@5", "recall_all@5", "recall_all@10", "NDCG@10")
    rows = [
        ["way", "dropped", "gold lost or pages changed", *measures, "change of recall_all@5", "of NDCG@10"]
    ]
    for one in results["datasets"].values():
        for entry in (one.get("downstream-eval") or {"rows": []})["rows"]:
            rows.append(
                [
                    entry["way"],
                    f"{100 * entry['share']:.0f} %",
                    f"{100 * entry['touched']:.1f} %",
                    *(f"{100 * entry['means'][name]:.1f}" for name in measures),
                    *(_change(entry["change"][name]) for name in ("recall_all@5", "NDCG@10")),
                ]
            )
    return rows


TABLES: Mapping[str, Callable[[Results], Rows]] = {
    "data": data,
    "correlations": correlations,
    "surprise": surprise,
    "decay": fits,
    "heterogeneity": heterogeneity,
    "downstream": downstream,
}


def write(results: Results, directory: Path) -> None:
    """Write every table as CSV and LaTeX."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        rows = table(results)
        with (directory / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        (directory / f"{name}.tex").write_text(latex(rows), encoding="utf-8")


def latex(rows: Sequence[Sequence[str]]) -> str:
    """Return a tabular environment."""
    special = {char: f"\\{char}" for char in "%_&#$"} | {"–": "--"}
    lines = [" & ".join("".join(special.get(c, c) for c in cell) for cell in row) + r" \\" for row in rows]
    body = [r"\begin{tabular}{" + "l" * len(rows[0]) + "}", r"\hline", lines[0], r"\hline", *lines[1:]]
    return "\n".join([*body, r"\hline", r"\end{tabular}", ""])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *rest])


def _change(entry: Mapping[str, float]) -> str:
    return f"{100 * entry['mean']:+.1f} [{100 * entry['low']:+.1f}, {100 * entry['high']:+.1f}]"


def _edges(edges: Sequence[float], digits: int) -> str:
    return ", ".join(f"{edge:.{digits}f}" for edge in edges)


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.4f}"
