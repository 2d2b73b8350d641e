"""One run: read a question set, file it, ask it, and write what came out."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.retrieval import peers, results
from benchmarks.retrieval.asking import NO_LLM, Answer, Granularity, ask
from benchmarks.retrieval.cases import Collection, selected
from benchmarks.retrieval.filing import Filed, Say, code_sha256, file_all
from benchmarks.retrieval.readers import beam, beir, convomem, locomo, longmemeval, membench, realtalk, xquad

READERS: Mapping[str, Callable[[Path], Collection]] = {
    "longmemeval": longmemeval.read,
    "locomo": locomo.read,
    "xquad": xquad.read,
    "xquad-across": xquad.read_across,
    "beir": beir.read,
    "convomem": convomem.read,
    "membench": membench.read,
    "beam": beam.read,
    "realtalk": realtalk.read,
}
UNTRIED = ("convomem", "membench", "beam", "realtalk")
"""Formats that are read by their documentation: nobody has run them on the data yet."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked for: ``collection`` by the name of its reader, and how it is searched.

    ``depth`` is how many results each question gets. ``peers`` are other systems on the same data.
    """

    collection: str
    path: Path
    work: Path
    granularity: Granularity = "session"
    split: str = "all"
    limit: int | None = None
    depth: int = 10
    settings: Mapping[str, object] = field(default_factory=dict)
    peers: tuple[str, ...] = ()
    refile: bool = False
    afresh: bool = False

    @property
    def identity(self) -> str:
        """What answers of a run that was broken off depend on, beside the data and the code."""
        named = {**NO_LLM, **self.settings}
        return json.dumps([self.granularity, self.depth, named], sort_keys=True, default=str)


def read(run: Run) -> Collection:
    """Read the question set and choose what is asked."""
    whole = READERS[run.collection](run.path)
    return replace(whole, cases=selected(whole.cases, run.split, run.limit))


def execute(run: Run, say: Say) -> tuple[dict[str, Any], dict[str, list[Answer]]]:
    """File, ask, and return the record of the run with the answers of each system."""
    collection = read(run)
    filed = file_all(collection, run.work, say, again=run.refile)
    answers, measured = castle_answers(run, collection, filed, say)
    systems = {"castle": answers}
    found = [measured]
    for name in run.peers:
        peer_answers, peer = peers.measure(name, run, collection, say)
        systems[name] = peer_answers
        found.append(peer)
    return record(run, collection, filed, found), systems


def castle_answers(
    run: Run, collection: Collection, filed: Sequence[Filed], say: Say, name: str = "castle"
) -> tuple[list[Answer], results.Measured]:
    """Ask Castle every question; a run that was broken off goes on if data, code and settings are equal."""
    palaces = (entry.data + entry.code for entry in filed)
    key = "\n".join((collection.name, code_sha256(), run.identity, *palaces))
    journal = run.work / "answers" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsonl"
    if run.afresh:
        journal.unlink(missing_ok=True)
    answers, degraded = ask(collection, run.work, run.settings, run.granularity, run.depth, journal, say)
    return answers, results.measured(
        name,
        answers,
        run.depth,
        groups=results.groups_of(collection.name, answers),
        degraded=degraded,
        size=sum(entry.bytes for entry in filed),
        seconds=sum(entry.seconds for entry in filed),
        model_seconds=sum(entry.model_seconds for entry in filed),
    )


def record(
    run: Run, collection: Collection, filed: Sequence[Filed], measured: Sequence[results.Measured]
) -> dict[str, Any]:
    """Return everything that a reader of the numbers has to know."""
    return {
        "collection": collection.name,
        "data_sha256": collection.data_sha256,
        "notes": list(collection.notes),
        "untried": run.collection in UNTRIED,
        "split": run.split,
        "limit": run.limit,
        "granularity": run.granularity,
        "depth": run.depth,
        "questions": sum(1 for _ in collection.questions),
        "settings": {**NO_LLM, **run.settings},
        "about": results.about(collection.embedder, command(run)),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "filing": results.filing(filed),
        "systems": list(measured),
    }


def command(run: Run) -> str:
    """Return the command that repeats a run, with the directories left open."""
    parts = [f"python -m benchmarks.retrieval run {run.collection} PATH --granularity {run.granularity}"]
    if run.split != "all":
        parts.append(f"--split {run.split}")
    if run.limit is not None:
        parts.append(f"--limit {run.limit}")
    if run.depth != 10:
        parts.append(f"--depth {run.depth}")
    parts += [f"--settings {name}={value}" for name, value in run.settings.items()]
    parts += [f"--peer {name}" for name in run.peers]
    return " ".join(parts)
