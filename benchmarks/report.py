"""Writes ``benchmarks/BENCHMARKS.md`` from the JSON files of runs: ``python -m benchmarks.report``.

One table holds one metric; every number comes from a file that the command above the table makes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.retrieval.quick import SKIPPED
from benchmarks.retrieval.results import GROUPS
from benchmarks.retrieval.running import UNTRIED

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent / "BENCHMARKS.md"
MAIN = ("R@1", "recall_any@5", "recall_any@10", "recall_all@5", "recall_all@10", "NDCG@10", "MRR@10")
CHOSEN = "sessions.json"
"""What ``benchmarks.tuning.sessions`` writes."""
_DOCUMENTS = ("xquad", "beir")
_OVERVIEW = ("R@1", "recall_any@5", "recall_any@10", "recall_all@5", "NDCG@10")

_HEAD = """# Benchmarks

Written by `python -m benchmarks.report` from the files in `benchmarks/results`; do not edit. What the numbers
mean, and what they do not mean, stands in [docs/benchmarks.md](../docs/benchmarks.md). No language model was
asked anything. Every table holds one metric; shares are percent, with the 95 % interval of a bootstrap over
questions. Numbers of different tables, splits or granularities must not be compared.
"""


def load(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the retrieval runs of a directory by the name of their file."""
    found = {}
    for path in sorted(directory.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(run, dict) and "systems" in run:
            found[path.stem] = run
    return found


def page(results: Path) -> str:
    """Return the whole report."""
    full, small = load(results), load(results / "quick")
    parts = [_HEAD, "## Overview", *_overview(full)]
    for run in full.values():
        parts += _run(run)
    parts += _chosen(results / CHOSEN)
    if small:
        parts += [
            "## Small runs\n\n`make bench` makes these in minutes, on a few questions of each set: they tell "
            "whether something is broken, not how good it is.",
            *_overview(small),
        ]
    parts += [_left_out(results / "quick" / SKIPPED)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _overview(runs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    plain = {name: run for name, run in runs.items() if "ablation" not in run}
    if not plain:
        yield "There are no runs."
        return
    systems = list(dict.fromkeys(s["system"] for run in plain.values() for s in run["systems"]))
    for metric in _OVERVIEW:
        rows = [
            [_titled(run, group), _count(run, group), *_cells(run, systems, group, metric)]
            for run in plain.values()
            for group in ("all", *GROUPS.get(run["collection"], ()))
        ]
        kept = [row for row in rows if any(cell != "-" for cell in row[2:])]
        if kept:
            yield f"### {metric}\n\n{table(['data', 'questions', *systems], kept)}"


def _titled(run: Mapping[str, Any], group: str) -> str:
    return _title(run) if group == "all" else f"{_title(run)}, {group}"


def _count(run: Mapping[str, Any], group: str) -> str:
    return str(next(iter(run["systems"][0]["groups"][group].values()))["n"])


def _cells(run: Mapping[str, Any], systems: Sequence[str], group: str, metric: str) -> list[str]:
    by_name = {system["system"]: system["groups"] for system in run["systems"]}
    return [_share(by_name.get(name, {}).get(group, {}).get(metric)) for name in systems]


def _title(run: Mapping[str, Any]) -> str:
    part = "" if run["limit"] is None else ", a selection"
    half = "" if run["split"] == "all" else f", half {run['split']}"
    unit = "document" if run["collection"].startswith(_DOCUMENTS) else run["granularity"]
    return f"{run['collection']} by {unit}{half}{part}"


def _run(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section of one run."""
    about = run["about"]
    kind = "what each stage and signal is worth" if "ablation" in run else ""
    yield f"## {_title(run)}{': ' if kind else ''}{kind}"
    lines = [
        f"- command: `{about['command']}`",
        f"- {run['questions']} questions, split {run['split']}; data SHA-256 `{run['data_sha256'][:16]}`",
        f"- castle {about['castle']} (source `{about['code']}`), embedder `{about['embedder']}`",
        f"- settings {', '.join(f'`{name}={value}`' for name, value in run['settings'].items())}",
        f"- {about['machine']}, Python {about['python']}; finished {run['finished']}",
    ]
    if run["untried"]:
        lines.append("- the reader of this format was written from its documentation")
    yield "\n".join(lines + [f"- {note}" for note in run["notes"]])
    if "ablation" in run:
        yield from _ablation(run)
        return
    systems = [system["system"] for system in run["systems"]]
    groups = run["systems"][0]["groups"]
    for metric in MAIN:
        if metric in groups["all"]:
            rows = [
                [group, str(found[metric]["n"]), *_cells(run, systems, group, metric)]
                for group, found in groups.items()
            ]
            yield f"### {_title(run)}: {metric}\n\n{table(['questions', 'n', *systems], rows)}"
    yield from _costs(run)


def _costs(run: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [system["system"], *(f"{system['latency'][key]:.1f}" for key in _LATENCY)]
        for system in run["systems"]
    ]
    yield f"### {_title(run)}: milliseconds of a search\n\n{table(['system', *_LATENCY.values()], rows)}"
    filing = run["filing"]
    rows = [
        [
            system["system"],
            f"{system['index_bytes'] / 1e6:.1f}",
            f"{system['index_seconds']:.1f}",
            f"{system['index_model_seconds']:.1f}",
        ]
        for system in run["systems"]
    ]
    heads = ["system", "MB", "s without model", "s of the model"]
    yield (
        f"### {_title(run)}: the index\n\n{table(heads, rows)}"
        f"\n\n{filing['palaces']} palaces, {filing['drawers']:,} drawers; {filing['texts_embedded']:,} texts "
        "were embedded for them, the vectors of the others had been made for palaces before."
    )
    told = run["systems"][0]["abstention"]
    if told:
        rows = [
            [
                f"{told['answered']} / {told['unanswered']}",
                f"{told['auroc']:.3f}",
                f"{100 * told['unanswered_refused']:.1f}",
                f"{100 * told['answered_refused']:.1f}",
            ]
        ]
        heads = ["with / without answer", "AUROC of the best relevance", "refused rightly", "refused wrongly"]
        yield f"### {_title(run)}: no confident match\n\n{table(heads, rows)}"


_LATENCY = {
    "wall_p50": "wall, median", "wall_p95": "wall, 95 %", "model_p50": "model, median",
    "rest_p50": "without model, median", "rest_p95": "without model, 95 %",
}  # fmt: skip


def _ablation(run: Mapping[str, Any]) -> Iterator[str]:
    for metric in ("R@1", "recall_any@5", "recall_any@10", "recall_all@5", "NDCG@10"):
        rows = [[system["system"], _share(system["groups"]["all"].get(metric))] for system in run["systems"]]
        yield f"### {_title(run)}, stages: {metric}\n\n{table(['stages', metric], rows)}"
    rows = [
        [system["system"], f"{system['latency']['wall_p50']:.1f}", f"{system['latency']['rest_p50']:.1f}"]
        for system in run["systems"]
    ]
    heads = ["stages", "ms, median", "of it without model"]
    yield (
        f"### {_title(run)}, stages: milliseconds of a search\n\n{table(heads, rows)}\n\n"
        "Later rows find in the caches of the models what earlier ones left there."
    )


def _chosen(path: Path) -> Iterator[str]:
    """Yield the section on the weights of sessions: none, chosen by cross-validation, and shipped."""
    if not path.is_file():
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    shipped = ", ".join(f"{name} {value:g}" for name, value in found["shipped"].items())
    yield (
        "## Weights of sessions\n\n`python -m benchmarks.tuning.sessions --longmemeval DIR --locomo FILE "
        f"--work DIR` chooses among {found['grid']} sets by cross-validation: for each fifth of the cases, "
        f"the best of the other four fifths of both collections. Shipped are {shipped}."
    )
    sets: dict[str, Any] = found["measured"]
    ways = next(iter(sets.values()))
    heads = ["weights", *(f"{name}, {found['questions'][name]} questions" for name in sets)]
    for metric in next(iter(ways.values())):
        rows = [[way, *(_share(measured[way][metric]) for measured in sets.values())] for way in ways]
        yield f"### Sessions: {metric}\n\n{table(heads, rows)}"


def _share(found: Mapping[str, float] | None) -> str:
    if found is None or found["mean"] is None:
        return "-"
    return f"{100 * found['mean']:.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"


def _left_out(path: Path) -> str:
    """Say what was not run, and why."""
    reasons = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    reasons = {name: reasons.get(name, "no data here") for name in UNTRIED} | reasons
    lines = [f"- {name}: {reason}" for name, reason in sorted(reasons.items())]
    told = "Readers of these formats are written from their documentation: " + ", ".join(UNTRIED) + "."
    return f"## Not run\n\n{told}\n\n" + "\n".join(lines)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is set left."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def main(argv: Sequence[str] | None = None) -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    options.out.write_text(page(options.results), encoding="utf-8")


if __name__ == "__main__":
    main()
