"""The mind in numbers: recall by layer, a simulated year with consolidation, and what saving costs.

    python -m benchmarks.mind_bench --work DIR [--locomo FILE] [--episodes 100000] [--quick] [--out FILE]
        [--resume]

``--locomo`` measures recall by layer; the conversations are filed below ``--work`` as those of
``benchmarks.retrieval`` are, and found again there. The year is lived through in a palace below ``--work``.
Saving and recalling without a model are measured with none loaded: the limits are 20 ms for 95 of 100 saves,
and 200 ms for 95 of 100 recalls by words. ``--quick`` takes a small year, and a part of one conversation.
On a busy machine, ``load`` says how busy, look at the time of the processor. ``--resume`` goes on after the
parts that an earlier run has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import mind_layers, mind_year, synthetic
from castle import Castle, __version__
from castle.mind.consolidation.clusters import available
from castle.mind.mind import Mind
from castle.store.palace import Palace

SAVE_LIMIT_MS, RECALL_LIMIT_MS = 20, 200
SAVES, RECALLS = 300, 100
QUICK = {"episodes": 1_040, "weeks": 8, "questions": 10, "saves": 50, "recalls": 20}


def saving(root: Path, count: int) -> dict[str, Any]:
    """Save episodes and facts into a palace that has no model loaded."""
    texts = [text[:300] for text in synthetic.texts(9, count, 50)]
    found: dict[str, Any] = {"saves": count}
    with Castle(root, embedder="builtin") as castle:
        castle.memory_save("the first one makes the palace", "episodic")
        for kind in ("episodic", "semantic", "working"):
            times = [_timed(lambda t=text, k=kind: castle.memory_save(f"{k}: {t}", k)) for text in texts]  # type: ignore[misc]
            found[kind] = _spread(times)
        assert not castle._palace().embedder_loaded
    found["limit_ms"] = SAVE_LIMIT_MS
    found["holds"] = all(found[kind]["p95_ms"] < SAVE_LIMIT_MS for kind in ("episodic", "semantic"))
    return found


def recalling(palace: Palace, count: int) -> dict[str, Any]:
    """Recall by words from a palace whose model is still being loaded."""
    palace.unready = "the embedder is being loaded; words only"
    mind = Mind(palace, actor="benchmark", halls={})
    questions = synthetic.questions(count + 1, synthetic.MOST_TOPICS)
    mind.recall(questions[0])
    times = [_timed(lambda q=question: mind.recall(q)) for question in questions[1:]]  # type: ignore[misc]
    palace.unready = ""
    found = {"recalls": count, **_spread(times), "limit_ms": RECALL_LIMIT_MS}
    return {**found, "holds": found["p95_ms"] < RECALL_LIMIT_MS}


def page(found: dict[str, Any]) -> str:
    """Return the report as Markdown: one table for each thing measured."""
    about = found["about"]
    sought = "patterns were looked for" if about["patterns"] else "no patterns, which need scikit-learn"
    took = "; ".join(
        f"{name}: {part['minutes']} minutes, load {part['load'][0]:.1f} to {part['load'][1]:.1f}"
        for name, part in found["took"].items()
    )
    told = f"castle {about['castle']}, {about['cpus']} processors; {sought}. {took}."
    parts = [f"# The mind\n\n`{about['command']}`\n\n{told}"]
    if "locomo" in found:
        told = found["locomo"]
        rows = [
            [name, f"{100 * value:.1f}", f"{told['milliseconds_p50'][name]:.0f}"]
            for name, value in told["recall_any@10"].items()
        ]
        head = f"{told['questions']} questions, {told['conversations']} conversations, {told['facts']} facts."
        parts.append(f"## Recall by layer, LoCoMo\n\n{head} Before and after one cycle of consolidation.\n")
        parts.append(_table(["layer", "any of the gold turns in 10, %", "median ms"], rows))
    year = found["year"]
    parts.append(f"## A year: {year['episodes']:,} episodes\n\nWhat became of them:\n")
    states = [
        [kind, *(str(by.get(state, 0)) for state in ("active", "dim", "cold"))]
        for kind, by in year["states"].items()
    ]
    parts.append(_table(["class", "active", "dim", "cold"], states))
    recall = [
        [kind, str(row["questions"]), str(row["kept"]), *(f"{100 * row[name]:.1f}" for name in _WAYS)]
        for kind, row in year["recall"].items()
    ]
    parts.append(
        "Recall at 10, %: the archive is what recall was before anything was forgotten.\n\n"
        + _table(["class", "questions", "of them kept", *_WAYS], recall)
    )
    heads = ["week", "total_scored", "archived", "dimmed", "patterns_detected", "waiting", "seconds"]
    parts.append("Cycles:\n\n" + _table(heads, [[str(row[key]) for key in heads] for row in year["cycles"]]))
    again = year["idempotent"]
    parts.append(
        f"Ten cycles more on unchanged data changed something in {again['changed_anything']} of them."
    )
    rows = [
        [f"save, {kind}", *_cells(found["saving"][kind]), str(SAVE_LIMIT_MS)]
        for kind in ("episodic", "semantic", "working")
    ]
    rows.append(["recall by words", *_cells(found["recalling"]), str(RECALL_LIMIT_MS)])
    parts.append("## Without a model, ms\n\n" + _table(_HEADS, rows))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


_HEADS = ("", "median", "95 %", "95 % of processor time", "limit")
_WAYS = ("castle_search", "memory_recall", "with cold")


def _cells(spread: dict[str, Any]) -> list[str]:
    return [f"{spread[key]:.1f}" for key in ("p50_ms", "p95_ms", "processor_p95_ms")]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of the wall and of the processor."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return 1000 * (time.perf_counter() - started), 1000 * (time.process_time() - used)


def _spread(taken: Sequence[tuple[float, float]]) -> dict[str, float]:
    walls, processor = ([pair[place] for pair in taken] for place in (0, 1))
    return {
        "p50_ms": round(statistics.median(walls), 2),
        "p95_ms": _p95(walls),
        "processor_p50_ms": round(statistics.median(processor), 2),
        "processor_p95_ms": _p95(processor),
    }


def _p95(values: Sequence[float]) -> float:
    return round(statistics.quantiles(values, n=20, method="inclusive")[-1], 2)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="where palaces are kept")
    parser.add_argument("--locomo", type=Path, help="locomo5.json or locomo10.json")
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--questions", type=int, help="of each conversation, and of each class of the year")
    parser.add_argument("--quick", action="store_true", help="a small one, in about a minute")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true", help="go on after the parts that are done")
    options = parser.parse_args(argv)
    quick = options.quick
    out = options.out or Path("benchmarks/results") / ("quick/mind_bench" if quick else "mind_bench")
    options.work.mkdir(parents=True, exist_ok=True)
    done = options.work / "mind-done.json"
    found: dict[str, Any] = {}
    if options.resume and done.exists():
        found = json.loads(done.read_text(encoding="utf-8"))
    for name, part in _parts(options).items():
        if name not in found:
            load, began = os.getloadavg()[0], time.monotonic()
            found |= part()
            minutes = round((time.monotonic() - began) / 60, 1)
            found.setdefault("took", {})[name] = {"minutes": minutes, "load": [load, os.getloadavg()[0]]}
            done.write_text(json.dumps(found), encoding="utf-8")
    found["about"] = {
        "command": f"python -m benchmarks.mind_bench {' '.join(sys.argv[1:] if argv is None else argv)}",
        "castle": __version__, "python": platform.python_version(), "cpus": os.cpu_count(),
        "patterns": available(),
    }  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(page(found), encoding="utf-8")
    print(page(found), file=sys.stderr)


def _parts(options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what is measured, each part with what it finds."""
    quick, work = options.quick, options.work
    asked = options.questions or (QUICK["questions"] if quick else 100)

    def save() -> dict[str, Any]:
        shutil.rmtree(work / "mind-saves", ignore_errors=True)
        return {"saving": saving(work / "mind-saves", QUICK["saves"] if quick else SAVES)}

    def live() -> dict[str, Any]:
        shutil.rmtree(work / "mind-year", ignore_errors=True)
        episodes = QUICK["episodes"] if quick else options.episodes
        weeks = QUICK["weeks"] if quick else mind_year.WEEKS
        palace, year = mind_year.simulate(work / "mind-year", episodes, weeks, asked)
        with closing(palace):
            return {"year": year, "recalling": recalling(palace, QUICK["recalls"] if quick else RECALLS)}

    def layers() -> dict[str, Any]:
        small = {"conversations": 1, "questions": 5, "facts": 10}
        whole = {"conversations": None, "questions": options.questions, "facts": None}
        return {"locomo": mind_layers.measure(options.locomo, work, **(small if quick else whole))}

    parts = {"saving": save, "year": live}
    return {**parts, "locomo": layers} if options.locomo is not None else parts


if __name__ == "__main__":
    main()
