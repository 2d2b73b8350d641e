"""How fast a source tree is filed: drawers per second with and without model time, beside the raw model.

    python -m benchmarks.mine_bench [--tree DIR] [--megabytes N] [--out FILE]

Without ``--tree`` it files Python's own standard library. Filing goes through ``Castle.mine`` into a new
palace in a temporary directory; the raw model embeds the same texts again, in one call, with nothing around.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from castle import Castle, __version__
from castle.models.base import Embedder
from castle.models.registry import load_embedder
from castle.store.ledger import Ledger
from castle.store.reading import changed_rows


@dataclass(frozen=True)
class Result:
    """One run; rates are drawers per second, times wall seconds."""

    tree: str
    megabytes: float
    files: int
    drawers: int
    texts_embedded: int
    seconds: float
    model_seconds: float
    drawers_per_second: float
    drawers_per_second_without_model: float
    raw_model_texts_per_second: float
    share_of_raw_model: float
    second_run_seconds: float
    second_run_texts_embedded: int
    disk_megabytes: float
    embedder: str
    castle: str
    python: str
    cpus: int
    command: str


class Stopwatch:
    """Counts what an embedder class does and how long it takes."""

    def __init__(self, kind: type) -> None:
        self.seconds = 0.0
        self.texts = 0
        original = kind.embed_documents  # type: ignore[attr-defined]

        def timed(embedder: Embedder, texts: Sequence[str]) -> object:
            started = time.perf_counter()
            vectors = original(embedder, texts)
            self.seconds += time.perf_counter() - started
            self.texts += len(texts)
            return vectors

        kind.embed_documents = timed  # type: ignore[attr-defined]


def sample(tree: Path, target: Path, limit: int) -> int:
    """Copy text files of a tree, in order of their paths, until there are ``limit`` bytes."""
    size = 0
    for path in sorted(tree.rglob("*")):
        if path.suffix not in {".py", ".md", ".rst", ".txt", ".toml"} or not path.is_file():
            continue
        if size >= limit or "site-packages" in path.parts:
            continue
        place = target / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
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


def run(tree: Path, megabytes: float, command: str) -> Result:
    """File a sample of the tree twice and embed its texts once more without anything around."""
    embedder = load_embedder("builtin")
    embedder.embed_documents(["the first call loads what is loaded lazily"])
    watch = Stopwatch(type(embedder))
    with tempfile.TemporaryDirectory() as place:
        project, palace = Path(place) / "tree", Path(place) / "palace"
        project.mkdir()
        size = sample(tree, project, int(megabytes * 1e6))
        old = time.time() - 3600
        for path in project.rglob("*"):
            os.utime(path, (old, old))
        started = time.perf_counter()
        with Castle(palace) as castle:
            report = castle.mine_project(project)
        seconds = time.perf_counter() - started
        model_seconds, embedded = watch.seconds, watch.texts
        started = time.perf_counter()
        with Castle(palace) as castle:
            castle.mine_project(project)
        second = time.perf_counter() - started
        disk = sum(file.stat().st_size for file in palace.rglob("*") if file.is_file())
        texts = embedded_texts(palace)
        second_embedded = watch.texts - embedded
        started = time.perf_counter()
        for first in range(0, len(texts), 1024):
            embedder.embed_documents(texts[first : first + 1024])
        raw = len(texts) / (time.perf_counter() - started)
    return Result(
        tree=str(tree),
        megabytes=round(size / 1e6, 2),
        files=report.files,
        drawers=report.drawers_new,
        texts_embedded=embedded,
        seconds=round(seconds, 2),
        model_seconds=round(model_seconds, 2),
        drawers_per_second=round(report.drawers_new / seconds, 1),
        drawers_per_second_without_model=round(report.drawers_new / (seconds - model_seconds), 1),
        raw_model_texts_per_second=round(raw, 1),
        share_of_raw_model=round(embedded / seconds / raw, 3),
        second_run_seconds=round(second, 2),
        second_run_texts_embedded=second_embedded,
        disk_megabytes=round(disk / 1e6, 2),
        embedder=embedder.identity.identity,
        castle=__version__,
        python=platform.python_version(),
        cpus=os.cpu_count() or 0,
        command=command,
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(sysconfig.get_paths()["stdlib"]))
    parser.add_argument("--megabytes", type=float, default=3.0, help="how much of the tree (default 3)")
    parser.add_argument("--out", type=Path, help="write the result there as JSON")
    options = parser.parse_args()
    command = " ".join(["python -m benchmarks.mine_bench", *sys.argv[1:]])
    result = run(options.tree, options.megabytes, command)
    for name, value in asdict(result).items():
        print(f"{name:34} {value}")
    if options.out is not None:
        options.out.write_text(json.dumps(asdict(result), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
