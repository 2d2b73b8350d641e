"""Texts whose every number is read from the results.

A template holds ``{{path|format}}`` for a value of the results, its steps parted by ``/``; the format is that
of Python, with ``%`` before it for a share in percent. ``{{table:NAME}}`` is a table and ``{{say:NAME}}`` a
sentence that depends on what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from research.info_theory import tables
from research.info_theory.relations import SURPRISE_PAIRS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Results = Mapping[str, Any]

TEXTS: Mapping[Path, Path] = {
    HERE / "paper" / "paper.template.md": HERE / "paper" / "paper.md",
    HERE / "paper" / "research.template.md": ROOT / "docs" / "research.md",
    HERE / "paper" / "reproducibility.template.md": HERE / "REPRODUCIBILITY.md",
}
"""Each template and the text that is made of it."""

DECISIVE = 4
"""A difference of AIC from which on one curve is clearly better (Burnham and Anderson, 2002)."""

MARK = re.compile(r"\{\{([^{}]+)\}\}")


def render(template: str, results: Results) -> str:
    """Fill in a template; raises KeyError for a value that the results do not have."""
    return MARK.sub(lambda match: _value(match[1].strip(), results), template)


def write(results: Results) -> None:
    """Write every text anew."""
    for template, target in TEXTS.items():
        target.write_text(render(template.read_text(encoding="utf-8"), results), encoding="utf-8")


def _value(named: str, results: Results) -> str:
    kind, _, name = named.partition(":")
    if kind == "table":
        return tables.markdown(tables.TABLES[name](results))
    if kind == "say":
        return SENTENCES[name](results)
    path, _, layout = named.partition("|")
    found: Any = results
    for step in path.split("/"):
        found = found[step]
    if layout.startswith("%"):
        return format(100 * found, layout[1:])
    return format(found, layout)


def _gate(results: Results) -> str:
    gate = results["gate"]
    if not gate["passed"]:
        return "The questions were not asked in this run, so the gate stays shut."
    told = ", ".join(f"{name}: {'no loss' if good else 'a loss'}" for name, good in gate["passed"].items())
    if gate["open"]:
        return f"The gate is open ({told})."
    return f"The gate stays shut ({told}): info-weight stays off unless it is asked for."


def _agreement(results: Results) -> str:
    published = results["published"]
    parts = []
    for name, one in results["datasets"].items():
        entry = one["correlations"]["A,B"]
        apart = entry["high"] < published["low"] or entry["low"] > published["high"]
        verdict = "does not contain" if apart else "overlaps that of"
        parts.append(
            f"on {name} {entry['rho']:.4f} [{entry['low']:.4f}, {entry['high']:.4f}], whose interval "
            f"{verdict} the published value"
        )
    return f"Spearman's rho of A and B is {'; '.join(parts)}."


def _winners(results: Results) -> str:
    parts = []
    for name, one in results["datasets"].items():
        entries = [entry for entry in one["fit-decay"]["B"].values() if entry is not None]
        best = [entry["winner"] for entry in entries]
        counted = ", ".join(f"{winner} {best.count(winner)}" for winner in sorted(set(best)))
        over = sum(entry["delta"] > 0 for entry in entries)
        clear = [entry["delta"] for entry in entries if abs(entry["delta"]) >= DECISIVE]
        wrong = sum((entry["delta"] > 0) != (entry["mixed_delta"] > 0) for entry in entries)
        parts.append(
            f"on {name} the best of the four curves in {len(entries)} strata is {counted}; the exponential "
            f"is ahead of the plain power law in {over}; by {DECISIVE} or more the power law "
            f"leads in {sum(delta < 0 for delta in clear)}, the exponential in "
            f"{sum(delta > 0 for delta in clear)}; sums on different scales would have named the "
            f"other of the two in {wrong}"
        )
    return f"By AIC on one scale: {'. '.join(part[0].upper() + part[1:] for part in parts)}."


def _surprise(results: Results) -> str:
    parts = []
    for name, one in results["datasets"].items():
        judged = one["llm-surprise"]
        if judged["reason"]:
            parts.append(f"on {name} not computed, {judged['reason']}")
            continue
        told = [
            f"{estimator} of {len(values)} ({judged['failed'][estimator]} answers unusable)"
            for estimator, values in judged["judged"].items()
        ]
        levels = ", ".join(f"{level} ({count})" for level, count in judged["levels"].items())
        parts.append(
            f"on {name}, of {judged['sample']} drawers, {judged['model']} gave {' and '.join(told)}; "
            f"{_pairs(one['correlations'])}; levels of C (drawers): {levels or 'none'}"
        )
    return ". ".join(part[0].upper() + part[1:] for part in parts) + "."


def _judged(results: Results) -> str:
    parts = [f"{name} {one['llm-surprise']['sample']}" for name, one in results["datasets"].items()]
    return ", ".join(parts)


def _pairs(correlations: Results) -> str:
    found = [
        f"rho({pair}) {entry['rho']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]"
        for pair in SURPRISE_PAIRS
        if (entry := correlations.get(pair)) is not None
    ]
    left_out = [pair for pair in SURPRISE_PAIRS if pair not in correlations]
    if left_out:
        found.append(f"none for {', '.join(left_out)}, of which one does not vary or too few were judged")
    return ", ".join(found)


def _heterogeneity(results: Results) -> str:
    parts = [
        f"{name}, {by}: {entry['epsilon2']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]"
        for name, one in results["datasets"].items()
        for by, entry in one["heterogeneity"].items()
    ]
    return "Epsilon squared is " + "; ".join(parts) + "."


def _downstream(results: Results) -> str:
    parts = []
    for one in results["datasets"].values():
        for row in (one.get("downstream-eval") or {"rows": []})["rows"]:
            if row["share"] or "info-weight" in row["way"]:
                change = row["change"]["recall_all@5"]
                what = row["way"] + (f" {100 * row['share']:.0f} %" if row["share"] else "")
                parts.append(f"{what} {100 * change['mean']:+.1f}")
    return "Change of recall_all@5 in points: " + ", ".join(parts) + "."


def _lost(results: Results) -> str:
    parts, worse = [], []
    for one in results["datasets"].values():
        rows = (one.get("downstream-eval") or {"rows": []})["rows"]
        chance = {row["share"]: row["touched"] for row in rows if row["way"] == "at random"}
        for row in rows:
            if row["way"].startswith("lowest") and row["share"] == min(chance):
                worse.append(row["touched"] > chance[row["share"]])
                parts.append(f"by {row['way']} {100 * row['touched']:.1f} %")
        if rows:
            parts.append(f"at random {100 * chance[min(chance)]:.1f} %")
    if not parts:
        return "It was not tested."
    verdict = "more" if all(worse) else "less" if not any(worse) else "by some more and by some less"
    return (
        f"Leaving out the first share loses {verdict} of the gold sessions than chance ({', '.join(parts)})."
    )


def _tests(results: Results) -> str:
    stands = [name for name, one in results["tests"].items() if one["stands"]]
    fallen = [name for name, one in results["tests"].items() if not one["stands"]]
    told = f" Those that do not: {', '.join(fallen)}." if fallen else ""
    total, rate = len(results["tests"]), results["q"]
    return f"Of {total} tests {len(stands)} stand at a false discovery rate of {rate}.{told}"


def _datasets(results: Results) -> str:
    manifest = results["manifest"]
    lines = []
    for name, one in results["datasets"].items():
        lines.append(
            f"- {name}: palaces `{one['describe']['fingerprint']}`, data files "
            f"`{manifest['data'].get(name, 'one’s own palace')}`"
        )
        filed = manifest["filed"].get(name)
        if filed:
            lines[-1] += f"; filed by Castle in the state {_states(filed)}"
        if one.get("downstream-eval"):
            lines[-1] += f", asked in the state {_states(one['downstream-eval']['code'])}"
    return "\n".join(lines)


def _states(codes: Sequence[str]) -> str:
    return ", ".join(f"`{code}`" for code in codes)


def _checks(results: Results) -> str:
    """Say which checks have passed on these very results."""
    told = [
        f"- {check['date']}, {', '.join(check['data'])}: {check['numbers']} numbers agree to "
        f"{check['tolerance']:g}; {check['computed']} results of stages were computed, "
        f"{check['reused']} came from the cache"
        + (f"; without C and S of {', '.join(check['without'])}" if check["without"] else "")
        for check in results["checks"]
    ]
    return "\n".join(told) or "None was made on these results yet."


def _packages(results: Results) -> str:
    return ", ".join(f"{name} {version}" for name, version in results["manifest"]["packages"].items())


SENTENCES: Mapping[str, Callable[[Results], str]] = {
    "gate": _gate,
    "agreement": _agreement,
    "winners": _winners,
    "surprise": _surprise,
    "judged": _judged,
    "heterogeneity": _heterogeneity,
    "downstream": _downstream,
    "lost": _lost,
    "tests": _tests,
    "datasets": _datasets,
    "packages": _packages,
    "checks": _checks,
}
