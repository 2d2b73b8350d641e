"""What each stage of the searcher is worth: recall, nDCG, MRR and latency on questions with known answers.

    python -m benchmarks.search_bench --locomo FILE --longmemeval DIR [--questions N] [--out FILE]

Every row is ``Castle.search`` with settings that any user can make, one stage more than the row before. The
transcripts are filed once into palaces under ``--work`` and found again there by the next run. A question
without an answer in the collection counts in no table but the last.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.corpora import Corpus, locomo, longmemeval
from castle import Castle, __version__, config
from castle.clock import to_iso
from castle.records import Hit, SearchResult

DEPTH = 10


@dataclass(frozen=True)
class Row:
    """One way to search: the settings that differ from the defaults."""

    name: str
    settings: Mapping[str, object]


OFF: Mapping[str, object] = {
    "search_mode": "fast", "reranker": "off", "recency_max_boost": 1.0, "weight_kg": 0.0,
    "weight_names": 0.0, "weight_times": 0.0, "weight_phrases": 0.0,
}  # fmt: skip
SIGNALS = ("weight_names", "weight_times", "weight_phrases")


def rows() -> list[Row]:
    """Return the rows of the tables: each stage is added to those before, priors in both strengths."""
    fused = dict(OFF)
    graph = {key: value for key, value in fused.items() if key != "weight_kg"}
    signals = {key: value for key, value in graph.items() if key not in SIGNALS}
    recent = {key: value for key, value in signals.items() if key != "recency_max_boost"}
    read = {key: value for key, value in recent.items() if key != "reranker"}
    return [
        Row("dense alone", {**fused, "weight_sparse": 0.0}),
        Row("lexical alone", {**fused, "weight_dense": 0.0}),
        Row("fused by rank (rrf)", {**fused, "fusion": "rrf"}),
        Row("fused by score", fused),
        Row("+ graph", graph),
        Row("+ names, times, phrases", signals),
        Row("+ recency", recent),
        Row("+ recency (compat)", {**recent, "priors": "compat"}),
        Row("+ cross-encoder = fast", read),
        Row("+ quality = standard", {"search_mode": "standard"}),
        Row("+ quality = standard (compat)", {"search_mode": "standard", "priors": "compat"}),
        Row("+ Soar = boosted", {"search_mode": "boosted"}),
        Row("+ Soar = boosted (compat)", {"search_mode": "boosted", "priors": "compat"}),
        Row("+ judge = max", {"search_mode": "max"}),
    ]


@dataclass(frozen=True)
class Measured:
    """The means of one row on one collection; ``refused`` counts answers said to be unsure, of two kinds."""

    questions: int
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float
    p50_ms: float
    p95_ms: float
    unsure_answerable: float
    unsure_unanswerable: float
    skipped: Sequence[str]


def measure(castle: Castle, corpus: Corpus) -> Measured:
    """Ask every question of a collection."""
    lists: list[tuple[list[bool], int]] = []
    times: list[float] = []
    unsure: dict[bool, list[bool]] = {True: [], False: []}
    skipped: set[str] = set()
    for asked in corpus.questions:
        started = time.perf_counter()
        result = castle.search(
            asked.text,
            wing=asked.wing,
            limit=DEPTH,
            by=corpus.by,
            now=None if asked.now is None else to_iso(asked.now),
        )
        times.append(1000 * (time.perf_counter() - started))
        unsure[bool(asked.gold)].append(not result.confident)
        skipped |= {f"{report.name} {report.status}" for report in result.stages if report.status != "ran"}
        if asked.gold:
            lists.append(([found in asked.gold for found in _found(result, corpus.by)], len(asked.gold)))
    quantiles = statistics.quantiles(times, n=20)
    return Measured(
        questions=len(lists),
        recall_5=_mean(sum(hits[:5]) / count for hits, count in lists),
        recall_10=_mean(sum(hits[:10]) / count for hits, count in lists),
        ndcg_10=_mean(_ndcg(hits, count) for hits, count in lists),
        mrr_10=_mean(_reciprocal(hits) for hits, _ in lists),
        p50_ms=statistics.median(times),
        p95_ms=quantiles[-1],
        unsure_answerable=_mean(unsure[True]),
        unsure_unanswerable=_mean(unsure[False]),
        skipped=sorted(skipped),
    )


def _found(result: SearchResult, by: str) -> list[str]:
    return [_name(hit, by) for hit in result.hits]


def _name(hit: Hit, by: str) -> str:
    return hit.source.split(":", 2)[2] if by == "session" else hit.message_id


def _ndcg(hits: Sequence[bool], relevant: int) -> float:
    gain = sum(hit / math.log2(rank + 1) for rank, hit in enumerate(hits[:10], start=1))
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(relevant, 10) + 1))


def _reciprocal(hits: Sequence[bool]) -> float:
    return next((1 / rank for rank, hit in enumerate(hits[:10], start=1) if hit), 0.0)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else math.nan


def build(corpus: Corpus, work: Path) -> Path:
    """File the transcripts of a collection, unless they are filed; return the palace."""
    palace = work / corpus.name / "palace"
    with Castle(palace) as castle:
        for wing, path in corpus.write(work / corpus.name / "transcripts"):
            report = castle.mine_conversations(path, wing=wing)
            if report.incomplete:
                raise SystemExit(f"{path}: {report.skipped}")
            print(f"{corpus.name}: {wing}, {report.drawers_new} new drawers", file=sys.stderr)
    return palace


def run(row: Row, corpus: Corpus, palace: Path) -> Measured:
    """Measure one row on one collection."""
    settings = replace(config.load({"palace_path": str(palace)}), **row.settings)  # type: ignore[arg-type]
    with Castle(settings=settings) as castle:
        return measure(castle, corpus)


TABLES = {
    "recall@5": ("recall_5", ".3f"),
    "recall@10": ("recall_10", ".3f"),
    "nDCG@10": ("ndcg_10", ".3f"),
    "MRR@10": ("mrr_10", ".3f"),
    "latency, median ms": ("p50_ms", ".0f"),
    "latency, 95th percentile ms": ("p95_ms", ".0f"),
    'share of answerable questions with "no confident match"': ("unsure_answerable", ".3f"),
    'share of unanswerable questions with "no confident match"': ("unsure_unanswerable", ".3f"),
}


def tables(found: Mapping[str, Mapping[str, Measured]], heads: Mapping[str, str]) -> str:
    """Write one Markdown table per metric: a line per row, a column per collection."""
    names = list(found)
    parts = []
    for title, (field, style) in TABLES.items():
        lines = [f"## {title}", "", "| stages | " + " | ".join(heads[name] for name in names) + " |"]
        lines.append("|---|" + "---:|" * len(names))
        for row in rows():
            cells = (format(getattr(found[name][row.name], field), style) for name in names)
            lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Build what is missing, measure every row, write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--locomo", type=Path, help="locomo5.json or locomo10.json")
    parser.add_argument(
        "--longmemeval", type=Path, help="directory of questions.jsonl.xz and sessions.jsonl.xz"
    )
    parser.add_argument("--questions", type=int, help="this many questions of LongMemEval (default: all)")
    parser.add_argument("--work", type=Path, default=Path(".bench"), help="where palaces are kept")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search_bench"))
    options = parser.parse_args(argv)
    corpora = []
    if options.locomo:
        corpora.append(locomo(options.locomo))
    if options.longmemeval:
        corpora.append(longmemeval(options.longmemeval, options.questions))
    if not corpora:
        parser.error("name a collection: --locomo FILE, --longmemeval DIR")
    found: dict[str, dict[str, Measured]] = {}
    heads = {}
    for corpus in corpora:
        palace = build(corpus, options.work)
        found[corpus.name] = {}
        for row in rows():
            measured = run(row, corpus, palace)
            found[corpus.name][row.name] = measured
            heads[corpus.name] = f"{corpus.name}, {measured.questions} questions, by {corpus.by}"
            print(corpus.name, row.name, json.dumps(asdict(measured)), file=sys.stderr)
    command = f"python -m benchmarks.search_bench {' '.join(sys.argv[1:] if argv is None else argv)}"
    about = {
        "command": command, "castle": __version__, "python": platform.python_version(),
        "embedder": "builtin", "split": "development: the conversations and questions named below",
    }  # fmt: skip
    results: dict[str, Any] = {
        "about": about,
        "results": {n: {r: asdict(m) for r, m in by_row.items()} for n, by_row in found.items()},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    head = f"# What each stage of a search is worth\n\n`{command}`\n\nEmbedder builtin, development data.\n\n"
    options.out.with_suffix(".md").write_text(head + tables(found, heads), encoding="utf-8")


if __name__ == "__main__":
    main()
