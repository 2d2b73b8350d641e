"""How a palace grows: filing, searching, disk and memory at several sizes, beside the limits.

    python -m benchmarks.scale --work DIR [--sizes 10000,100000,1000000] [--out FILE]

Real text (Python's own library, or ``--tree``) is filed through ``Castle.mine``. The palaces of each size
hold the texts and vectors of ``benchmarks.synthetic``; a question is answered by ``Castle.search`` all the
same, and takes the time of the built-in model. They stay below ``--work``; a run that was stopped goes on
where it was.

Cold means a new process, files that are not in the cache of the operating system, and no cached tokens; warm
is the same questions once more. The limits are a scan of the same vectors in NumPy, in memory, and the
built-in model alone. NumPy has one thread, as in the commands and servers. ``load`` is that of the machine
before and after a step: on a busy one, look at the time of the processor, which counts all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import synthetic
from benchmarks.speed import sample
from castle import Castle, __version__
from castle.models.registry import load_embedder
from castle.records import Chunk, Scope
from castle.store.catchup import behind, catch_up_lexicon, catch_up_vectors
from castle.store.filing import Filing, NewDrawer, Place, Version
from castle.store.palace import TOKEN_CACHE, Palace
from castle.store.status import status

QUESTIONS = 200
PER_SOURCE = 500
WINGS = 16
CHECKED = 50
"""Questions on which the index of vectors is compared with the exact scan."""
RECALL_AT = 50
DAY = 86_400_000_000


# Each step runs in a process of its own and returns what it measured.


def file_real_text(work: Path, tree: Path) -> dict[str, Any]:
    """File a sample of real text with the fake and with the built-in embedder."""
    found: dict[str, Any] = {}
    for embedder, megabytes in (("fake", 3.0), ("builtin", 0.7)):
        with tempfile.TemporaryDirectory(dir=work) as directory:
            root = Path(directory)
            sample(tree, root / "tree", int(megabytes * 1_000_000))
            with Castle(root / "palace", embedder=embedder) as castle:
                started = time.perf_counter()
                castle.mine(root / "tree")
                seconds = time.perf_counter() - started
                drawers = castle.status().drawers
        found[embedder] = {"drawers": drawers, "seconds": seconds, "drawers_per_second": drawers / seconds}
    return found


def build(root: Path, size: int) -> dict[str, Any]:
    """File ``size`` synthetic drawers and bring both indexes up to date; goes on with what is there."""
    palace = Palace(root, create=True, embedder=synthetic.NAME)
    seconds = {"filing": _timed(lambda: _file(palace, size))}
    palace.ledger.analyze()
    for name, catch_up in (("words", catch_up_lexicon), ("vectors", catch_up_vectors)):
        seconds[name] = _timed(lambda catch_up=catch_up, name=name: catch_up(palace, progress=_tell(name)))  # type: ignore[misc]
    assert not behind(palace, palace.lexicon) and not behind(palace, palace.vectors)
    palace.close()
    return {
        "seconds": seconds,
        "drawers_per_second": size / sum(seconds.values()),
        "peak_memory_mb": _peak_memory(),
    }


def _file(palace: Palace, size: int) -> None:
    with palace.ledger.read() as cx:
        done = cx.exec_driver_sql("SELECT count(*) FROM sources WHERE revision > 0").scalar_one()
    tell = _tell("filing")
    for source in range(done, size // PER_SOURCE):
        texts = synthetic.texts(source, PER_SOURCE, _topics(size))
        when = palace.ledger.clock() - source * DAY // 100
        # Half of all sources in the first wing, a quarter in the second, and so on.
        wing = min(WINGS - 1, ((source + 1) & -(source + 1)).bit_length() - 1)
        place = Place(f"synthetic:{source}", "file", f"/synthetic/{source}.txt", f"{source}.txt",
                      f"wing_{wing}", f"room_{source % 7}")  # fmt: skip
        items, start = [], 0
        for line, text in enumerate(texts, start=1):
            chunk = Chunk(text, start, start + len(text), line, line)
            items.append(NewDrawer(chunk, None, "", "prose", f"{source}.txt", when))
            start += len(text)
        filing = Filing(palace.ledger, place, 0)
        with palace.ledger.write() as cx:
            filing.stage(cx, items, "benchmark")
            filing.complete(cx, Version(bytes(32), start, "", "synthetic/1", "utf-8", when, "benchmark"))
        tell((source + 1) * PER_SOURCE, size)


def search(root: Path, size: int) -> dict[str, Any]:
    """Ask every question cold and warm, and warm in one wing."""
    _out_of_cache(root)
    questions = synthetic.questions(QUESTIONS, _topics(size))
    found: dict[str, Any] = {}
    with Castle(root) as castle:
        castle.clear_caches()
        started = time.perf_counter()
        castle.search("the first question of a process")
        found["first_seconds"] = time.perf_counter() - started
        for name, wing in (("cold", None), ("warm", None), ("one wing", "wing_3")):
            found[name] = _ask(castle, questions, wing)
            print(f"  {size:,} {name}: {json.dumps(found[name])}", file=sys.stderr)
        calls: dict[str, Callable[[], object]] = {
            "status": castle.status,
            "places": castle.places,
            "list_drawers": lambda: castle.list_drawers(wing="wing_1", limit=20),
        }
        found["calls"] = {name: _spread([_timed(call) for _ in range(5)]) for name, call in calls.items()}
    return {**found, "peak_memory_mb": _peak_memory()}


def _ask(castle: Castle, questions: Sequence[str], wing: str | None) -> dict[str, Any]:
    walls, models, dense, words, processors = [], [], [], [], []
    for question in questions:
        started, used = time.perf_counter(), time.process_time()
        result = castle.search(question, wing=wing, limit=10)
        walls.append(time.perf_counter() - started)
        processors.append(time.process_time() - used)
        models.append(sum(report.model_seconds for report in result.stages))
        took = {report.name: report.seconds - report.model_seconds for report in result.stages}
        dense.append(took["dense"])
        words.append(took["lexical"])
        assert result.hits and not result.degraded, result.degraded
    rest = [wall - model for wall, model in zip(walls, models, strict=True)]
    return {
        "wall": _spread(walls),
        "model": _spread(models),
        "without_model": _spread(rest),
        "processor": _spread(processors),
        "recall_by_vectors": _spread(dense),
        "recall_by_words": _spread(words),
    }


def limits(root: Path, size: int) -> dict[str, Any]:
    """Ask the same questions of a NumPy scan and of the model alone; compare the index with the scan."""
    import numpy as np

    questions = synthetic.questions(QUESTIONS, _topics(size))
    model = load_embedder("builtin")
    model.embed_query("warm up")
    model_times = [_timed(lambda q=q: model.embed_query(q)) for q in questions]  # type: ignore[misc]
    palace = Palace(root)
    queries = [palace.embedder.embed_query(question) for question in questions]
    vectors = palace.vectors
    answers = [_timed(lambda q=q: vectors.search(q, Scope(), 100)) for q in queries]  # type: ignore[misc]
    scans = [_timed(lambda q=q: vectors.search(q, Scope(), 100, exact=True)) for q in queries[:CHECKED]]  # type: ignore[misc]
    recall = {}
    for name, scope in (("everywhere", Scope()), ("one wing", Scope(wing="wing_3"))):
        shares = []
        for query in queries[:CHECKED]:
            exact = {match.id for match in vectors.search(query, scope, RECALL_AT, exact=True)}
            shares.append(
                len(exact & {match.id for match in vectors.search(query, scope, RECALL_AT)}) / len(exact)
            )
        recall[name] = statistics.mean(shares)
    ids = _ids(palace)
    palace.close()
    matrix = np.zeros((size, synthetic.DIM), dtype=np.float32)
    for start in range(0, size, 10_000):
        part = vectors.vectors_of(ids[start : start + 10_000])
        matrix[start : start + len(part)] = np.stack(list(part.values()))
    times = []
    for query in queries:
        started = time.perf_counter()
        scores = matrix @ query
        best = np.argpartition(scores, -100)[-100:]
        best[np.argsort(-scores[best])]
        times.append(time.perf_counter() - started)
    return {
        "numpy_scan": _spread(times),
        "model": _spread(model_times),
        "vectors": _spread(answers),
        "vectors_exact": _spread(scans),
        f"recall_at_{RECALL_AT}": recall,
    }


def disk(root: Path, size: int) -> dict[str, Any]:
    """Return megabytes by part, and how much all of it is beside texts and 32-bit vectors."""
    palace = Palace(root)
    found = {part.name: part.bytes for part in status(palace).projections}
    palace.close()
    with sqlite3.connect(f"{(root / 'castle.db').resolve().as_uri()}?mode=ro", uri=True) as cx:
        (cached,) = cx.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'vectors'").fetchone()
        text, drawers = cx.execute("SELECT sum(length(CAST(text AS BLOB))), count(*) FROM drawers").fetchone()
    ledger = sum(file.stat().st_size for file in root.glob("castle.db*"))
    tokens = sum(file.stat().st_size for file in root.glob(f"{TOKEN_CACHE}*"))
    total = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    content = text + drawers * synthetic.DIM * 4
    return {
        "ledger_mb": (ledger - cached) / 1e6,
        "cached_vectors_mb": cached / 1e6,
        "vectors_mb": found["vectors"] / 1e6,
        "words_mb": found["words"] / 1e6,
        "total_mb": total / 1e6,
        "token_cache_mb": tokens / 1e6,
        "text_mb": text / 1e6,
        "text_and_vectors_mb": content / 1e6,
        "ratio": total / content,
        "bytes_per_drawer": total / drawers,
    }


STEPS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "build": build,
    "search": search,
    "limits": limits,
    "disk": disk,
}


def _ids(palace: Palace) -> list[str]:
    with palace.ledger.read() as cx:
        return [id_ for (id_,) in cx.exec_driver_sql("SELECT id FROM drawers")]


def _topics(size: int) -> int:
    return max(50, min(synthetic.MOST_TOPICS, size // 200))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return milliseconds."""
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {"p50_ms": round(1000 * statistics.median(seconds), 2), "p95_ms": round(1000 * p95, 2)}


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _out_of_cache(root: Path) -> None:
    """Ask the operating system to drop what it holds of the palace's files."""
    for file in root.rglob("*"):
        if file.is_file() and hasattr(os, "posix_fadvise"):
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def _tell(name: str) -> Callable[[int, int], None]:
    last = [0.0]

    def tell(done: int, total: int) -> None:
        if time.monotonic() - last[0] > 10:
            last[0] = time.monotonic()
            print(f"  {name}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return tell


def _run(work: Path, size: int, step: str, tree: Path) -> dict[str, Any]:
    """Run a step in a process of its own, unless its result is there."""
    kept = work / f"{size}.{step}.json"
    if not kept.exists():
        print(f"{size:,} {step}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.scale", "--work", str(work), "--tree", str(tree)]
        one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command += ["--step", step, "--sizes", str(size), "--out", str(kept)]
        subprocess.run(command, check=True, env=one_thread)
    loaded: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return loaded


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every size, or one step of one size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--tree", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scale.json"))
    parser.add_argument("--step", choices=["real", *STEPS], help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    options.work.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in options.sizes.split(",")]
    synthetic.register()
    if options.step:
        before = os.getloadavg()[0]
        if options.step == "real":
            measured = file_real_text(options.work, options.tree)
        else:
            measured = STEPS[options.step](options.work / f"palace-{sizes[0]}", sizes[0])
        measured["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
        _write(options.out, measured)
        return
    found = {
        "about": {
            "command": f"python -m benchmarks.scale {' '.join(sys.argv[1:] if argv is None else argv)}",
            "castle": __version__, "python": platform.python_version(), "cpus": os.cpu_count(),
            "machine": platform.machine(), "questions": QUESTIONS,
        },
        "real_text": _run(options.work, 0, "real", options.tree),
        "sizes": {},
    }  # fmt: skip
    for size in sizes:
        found["sizes"][str(size)] = {step: _run(options.work, size, step, options.tree) for step in STEPS}
        _write(options.out, found)
    from benchmarks.scale_plot import write

    write(found, options.out)


if __name__ == "__main__":
    main()
