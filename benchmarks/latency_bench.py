"""How long a search takes: wall and model time per mode, on questions that a palace was never asked before.

    python -m benchmarks.latency_bench --palace DIR --questions FILE [--count N] [--out FILE]

The file holds one question a line. Cold means that the caches of the palace's models are empty when the first
question is asked and fill as they would for a user; warm is the same questions once more. Without model time
is what Castle itself takes: wall time less the time in the embedder, the cross-encoder and the judge.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from castle import Castle, __version__
from castle.search.options import MODES


@dataclass(frozen=True)
class Latency:
    """Milliseconds of one mode in one state of the caches."""

    mode: str
    caches: str
    wall_p50: float
    wall_p95: float
    without_model_p50: float
    without_model_p95: float
    skipped: Sequence[str]


def ask_all(castle: Castle, mode: str, caches: str, questions: Sequence[str]) -> Latency:
    """Ask every question once."""
    walls, rests = [], []
    skipped: set[str] = set()
    for question in questions:
        started = time.perf_counter()
        result = castle.search(question, mode=mode, limit=10)  # type: ignore[arg-type]
        wall = 1000 * (time.perf_counter() - started)
        walls.append(wall)
        rests.append(wall - 1000 * sum(report.model_seconds for report in result.stages))
        skipped |= {f"{r.name} {r.status}" for r in result.stages if r.status != "ran"}
    return Latency(
        mode, caches, *_spread(walls), *_spread(rests), sorted(name for name in skipped if "mode" not in name)
    )


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every mode, cold and warm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--palace", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/latency_bench"))
    options = parser.parse_args(argv)
    lines = options.questions.read_text(encoding="utf-8").splitlines()
    questions = list(dict.fromkeys(line for line in lines if line.strip()))[: options.count]
    found = []
    for mode in MODES:
        with Castle(options.palace) as castle:
            drawers = castle.status().drawers
            castle.search("warm up the models", mode=mode)
            castle.clear_caches()
            for caches in ("cold", "warm"):
                found.append(ask_all(castle, mode, caches, questions))
                print(json.dumps(asdict(found[-1])), file=sys.stderr)
    command = f"python -m benchmarks.latency_bench {' '.join(sys.argv[1:] if argv is None else argv)}"
    about = {
        "command": command, "drawers": drawers, "questions": len(questions), "castle": __version__,
        "python": platform.python_version(),
    }  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = {"about": about, "results": [asdict(item) for item in found]}
    options.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    rows = [
        "| mode | caches | wall p50 | wall p95 | without model p50 | without model p95 |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {m.mode} | {m.caches} | {m.wall_p50:.0f} | {m.wall_p95:.0f} | {m.without_model_p50:.0f} "
            f"| {m.without_model_p95:.0f} |"
            for m in found
        ),
    ]  # fmt: skip
    head = f"# Latency in milliseconds\n\n`{command}`\n\n{drawers:,} drawers, {len(questions)} questions.\n\n"
    options.out.with_suffix(".md").write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
