"""How fast everything is, beside what bounds it and beside a peer, as ratios from one run.

    python -m benchmarks.speed [--quick] [--tree DIR] [--megabytes N] [--peer-python FILE
        [--peer-home DIR]] [--out FILE]

Text files of a tree (Python's own library unless another is named) are filed through ``Castle.mine`` into new
palaces in a temporary directory, with the built-in embedder and with the fake one, which takes hardly any
time. Everything that is compared is measured in the same run on the same files: the model alone on the same
texts, a scan of the same vectors in NumPy, reading the same drawers by id from SQLite, and the peer,
mempalace in the environment of the Python that is named. ``cpu`` is the time of the processor, over all
threads: on a busy machine it tells more than ``wall``. How this grows with the palace is what
``benchmarks.scale`` measures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
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

from castle import Castle, __version__
from castle.local import is_ours, socket_path
from castle.models.base import Embedder
from castle.models.registry import load_embedder
from castle.store.ledger import Ledger
from castle.store.palace import TOKEN_CACHE
from castle.store.reading import changed_rows

SUFFIXES = {".py", ".md", ".rst", ".txt", ".toml"}
OUT = Path("benchmarks/results/speed.json")
PATIENCE_SECONDS = 60
Took = dict[str, float]


class Stopwatch:
    """Counts what an embedder class does and how long it takes, in seconds and in those of the processor."""

    def __init__(self, kind: type) -> None:
        self.wall = self.cpu = 0.0
        self.texts = 0
        original = kind.embed_documents  # type: ignore[attr-defined]

        def timed(embedder: Embedder, texts: Sequence[str]) -> object:
            wall, cpu = time.perf_counter(), time.process_time()
            vectors = original(embedder, texts)
            self.wall += time.perf_counter() - wall
            self.cpu += time.process_time() - cpu
            self.texts += len(texts)
            return vectors

        kind.embed_documents = timed  # type: ignore[attr-defined]


def sample(tree: Path, target: Path, limit: int) -> int:
    """Copy text files of a tree, in order of their paths, until there are ``limit`` bytes; return them."""
    size = 0
    for path in sorted(tree.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file() or "site-packages" in path.parts:
            continue
        if size >= limit:
            break
        place = target / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        old = time.time() - 3600  # what was written just now would be read again by the second run
        os.utime(place, (old, old))
        size += path.stat().st_size
    return size


def embedded_texts(palace: Path) -> list[str]:
    """Return every distinct text that was embedded, in order of filing."""
    ledger = Ledger(palace)
    texts: dict[str, None] = {}
    after = 0
    while True:
        with ledger.read() as cx:
            rows = changed_rows(cx, after, 1000)
        if not rows:
            break
        texts.update((row.embedded, None) for row in rows)
        after = rows[-1].seq
    ledger.close()
    return list(texts)


def filing(project: Path, palace: Path, embedder: str) -> dict[str, Any]:
    """File the project into a new palace, and once more when nothing has changed."""
    loaded = load_embedder(embedder)
    loaded.embed_documents(["the first call loads what is loaded lazily"])
    watch = Stopwatch(type(loaded))
    with Castle(palace, embedder=embedder) as castle:
        took = _took(lambda: castle.mine_project(project))
        drawers = castle.status().drawers
        again = _took(lambda: castle.mine_project(project))
    found: dict[str, Any] = {
        "drawers": drawers,
        "texts_embedded": watch.texts,
        **took,
        "model": {"wall": watch.wall, "cpu": watch.cpu},
        "drawers_per_second": drawers / took["wall"],
        "drawers_per_second_without_model": drawers / (took["wall"] - watch.wall),
        "drawers_per_cpu_second_without_model": drawers / (took["cpu"] - watch.cpu),
        "nothing_new": again,
    }
    return found


def raw_model(palace: Path) -> dict[str, Any]:
    """Embed the texts of a palace with nothing around, in batches as large as those of the filing."""
    texts = embedded_texts(palace)
    model = load_embedder("builtin")
    model.embed_documents(["the first call loads what is loaded lazily"])

    def work() -> None:
        for first in range(0, len(texts), 1024):
            model.embed_documents(texts[first : first + 1024])

    took = _took(work)
    return {
        **took,
        "texts": len(texts),
        "texts_per_second": len(texts) / took["wall"],
        "texts_per_cpu_second": len(texts) / took["cpu"],
    }


def asking(palace: Path, count: int) -> dict[str, Any]:
    """Ask ``count`` questions in one process, first with empty caches, then once more; and the limits."""
    import numpy as np

    with sqlite3.connect(palace / "castle.db") as cx:
        rows = cx.execute("SELECT id, text FROM drawers WHERE seq IS NOT NULL ORDER BY id").fetchall()
    step = max(1, len(rows) // count)
    questions = [" ".join(text.split()[:12]) or "nothing" for _, text in rows[::step]][:count]
    found: dict[str, Any] = {"questions": len(questions)}
    with Castle(palace) as castle:
        castle.search("the first question of a process")
        castle.clear_caches()
        for caches in ("cold", "warm"):
            walls, models = [], []
            for question in questions:
                started = time.perf_counter()
                result = castle.search(question, limit=10)
                walls.append(time.perf_counter() - started)
                models.append(sum(report.model_seconds for report in result.stages))
            rest = [wall - model for wall, model in zip(walls, models, strict=True)]
            found[caches] = {
                "wall": _spread(walls),
                "model": _spread(models),
                "without_model": _spread(rest),
            }
        model, vectors = load_embedder("builtin"), castle._palace().vectors
        ids = [id_ for id_, _ in rows]
        matrix = np.stack(list(vectors.vectors_of(ids).values()))
        queries = [model.embed_query(question) for question in questions]
        found["limits"] = {
            "model": _spread([_wall(lambda q=q: model.embed_query(q)) for q in questions]),  # type: ignore[misc]
            "numpy_scan": _spread([_wall(lambda q=q: _best(matrix, q)) for q in queries]),  # type: ignore[misc]
        }
    with sqlite3.connect(palace / "castle.db") as cx:
        marks = ",".join("?" * min(20, len(ids)))
        read = f"SELECT * FROM drawers WHERE id IN ({marks})"  # noqa: S608
        times = [_wall(lambda: cx.execute(read, ids[:20]).fetchall()) for _ in questions]
        found["limits"]["sqlite_read"] = _spread(times)
    return found


def _best(matrix: Any, query: Any) -> Any:
    scores = matrix @ query
    return scores.argsort()[-100:]


def starting(palace: Path, times: int) -> dict[str, Any]:
    """Run commands in new processes: with no server, and with one."""
    castle = str(Path(sys.executable).with_name("castle"))
    environment = {**os.environ, "CASTLE_PALACE_PATH": str(palace)}
    search = [castle, "search", "how is a temporary file removed", "--json"]
    found: dict[str, Any] = {
        "python": _commands([sys.executable, "-c", "pass"], environment, times),
        "help": _commands([castle, "--help"], environment, times),
        "search_alone": _commands(search, environment, times),
    }
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen([castle, "serve", "--port", "0"], env=environment, stderr=log, stdout=log)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not is_ours(socket_path(str(palace))) and time.monotonic() < deadline:
                time.sleep(0.1)
            for _ in range(3):  # the first question has the models loaded
                _commands(search, environment, 1)
                time.sleep(2)
            found["search_with_server"] = _commands(search, environment, times)
            found["server_memory_mb"] = _memory(server.pid)
        finally:
            server.terminate()
            server.wait(PATIENCE_SECONDS)
    return found


def disk(palace: Path) -> dict[str, float]:
    """Return megabytes, and how often the texts and 32-bit vectors would fit into what there is."""
    with sqlite3.connect(palace / "castle.db") as cx:
        text, drawers = cx.execute("SELECT sum(length(CAST(text AS BLOB))), count(*) FROM drawers").fetchone()
    content = text + drawers * 384 * 4
    total = sum(file.stat().st_size for file in palace.rglob("*") if file.is_file())
    tokens = sum(file.stat().st_size for file in palace.glob(f"{TOKEN_CACHE}*"))
    return {
        "total_mb": total / 1e6,
        "token_cache_mb": tokens / 1e6,
        "text_and_vectors_mb": content / 1e6,
        "ratio": total / content,
    }


def peer(python: Path, home: Path, project: Path, work: Path, times: int) -> dict[str, Any]:
    """File the same files with mempalace, and search them in new processes.

    It finds its embedder below ``home``, in ``.cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx``.
    """
    program = [str(python.with_name("mempalace")), "--palace", str(work / "peer")]
    here = work / "peer-project"
    shutil.copytree(project, here)
    environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False", "HOME": str(home)}
    init = _commands([*program, "init", str(here), "--yes", "--no-llm"], environment, 1)
    mine = _commands([*program, "mine", str(here)], environment, 1)
    search = _commands([*program, "search", "how is a temporary file removed"], environment, times)
    return {"init": init, "mine": mine, "search": search}


def _commands(command: Sequence[str], environment: dict[str, str], times: int) -> Took:
    """Run a command several times; return the medians of its seconds, wall and processor."""
    walls, cpus = [], []
    for _ in range(times):
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        walls.append(time.perf_counter() - started)
        cpus.append(usage.ru_utime + usage.ru_stime)
        if process.returncode not in (0, 3):
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {"wall": statistics.median(walls), "cpu": statistics.median(cpus)}


def _took(work: Callable[[], object]) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _wall(work: Callable[[], object]) -> float:
    return _took(work)["wall"]


def _spread(seconds: Sequence[float]) -> Took:
    """Return milliseconds."""
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {"p50_ms": 1000 * statistics.median(seconds), "p95_ms": 1000 * p95}


def _memory(pid: int) -> float:
    """Return the megabytes that a process has in memory, 0 where the system does not tell in this way."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Return what is compared: everything in the terms of what it is measured beside."""
    real, limit, start = found["filing"]["builtin"], found["raw_model"], found["starting"]
    per_cpu = real["texts_embedded"] / real["cpu"]
    result = {
        "filing / raw model, texts a second": real["texts_embedded"]
        / real["wall"]
        / limit["texts_per_second"],
        "filing / raw model, texts a second of the processor": per_cpu / limit["texts_per_cpu_second"],
        "a question without model, warm / NumPy scan": found["asking"]["warm"]["without_model"]["p50_ms"]
        / found["asking"]["limits"]["numpy_scan"]["p50_ms"],
        "a question without model, warm / SQLite read": found["asking"]["warm"]["without_model"]["p50_ms"]
        / found["asking"]["limits"]["sqlite_read"]["p50_ms"],
        "castle --help / python": start["help"]["cpu"] / start["python"]["cpu"],
        "castle search, alone / with a server": start["search_alone"]["cpu"]
        / start["search_with_server"]["cpu"],
        "disk / text and vectors": found["disk"]["ratio"],
    }
    if "peer" in found:
        result["mempalace / castle, filing"] = found["peer"]["mine"]["cpu"] / real["cpu"]
        result["mempalace / castle, cold search"] = (
            found["peer"]["search"]["cpu"] / start["search_alone"]["cpu"]
        )
        result["mempalace / castle, search with a server"] = (
            found["peer"]["search"]["cpu"] / start["search_with_server"]["cpu"]
        )
    return result


def table(found: dict[str, Any]) -> str:
    """Return the ratios and the numbers behind them as Markdown."""
    lines = ["# Speed", "", f"`{found['about']['command']}`", "", "| ratio | |", "|---|---:|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in found["ratios"].items()]
    lines += ["", "| command, median | wall s | processor s |", "|---|---:|---:|"]
    commands = {name: took for name, took in found["starting"].items() if isinstance(took, dict)}
    commands |= {f"mempalace {name}": took for name, took in found.get("peer", {}).items()}
    lines += [f"| {name} | {took['wall']:.2f} | {took['cpu']:.2f} |" for name, took in commands.items()]
    fake = found["filing"]["fake"]
    lines += [
        "",
        f"Filing without model time: {fake['drawers_per_second_without_model']:,.0f} drawers a second, "
        f"{fake['drawers_per_cpu_second_without_model']:,.0f} a second of the processor.",
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure everything and write it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few hundred drawers, each command twice")
    parser.add_argument("--tree", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--megabytes", type=float, default=3.0, help="how much of the tree (default 3)")
    parser.add_argument("--peer-python", type=Path, help="Python of an environment with mempalace")
    parser.add_argument("--peer-home", type=Path, default=Path.home(), help="home directory for the peer")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(argv)
    size, times, questions = (0.2, 2, 10) if options.quick else (options.megabytes, 7, 100)
    given = " ".join(sys.argv[1:] if argv is None else argv)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        os.environ["CASTLE_HOME"] = str(work / "home")
        project = work / "tree"
        copied = sample(options.tree, project, int(size * 1e6))
        found: dict[str, Any] = {
            "filing": {name: filing(project, work / name, name) for name in ("fake", "builtin")},
            "raw_model": raw_model(work / "builtin"),
            "asking": asking(work / "builtin", questions),
            "starting": starting(work / "builtin", times),
            "disk": disk(work / "builtin"),
        }
        if options.peer_python is not None:
            found["peer"] = peer(options.peer_python, options.peer_home, project, work, times)
    found["ratios"] = ratios(found)
    found["about"] = {
        "command": f"python -m benchmarks.speed {given}".strip(),
        "megabytes": copied / 1e6,
        "castle": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    options.out.with_suffix(".md").write_text(table(found), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
