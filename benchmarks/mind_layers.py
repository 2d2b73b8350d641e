"""Recall by layer on LoCoMo, for ``benchmarks.mind_bench``.

The turns of a conversation are episodes. The observations that LoCoMo comes with, each with the turns that
show it, are saved as facts that cite those turns. A question counts as answered where one of its gold turns,
or a fact that cites one, is among the first ten memories.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case, Question
from benchmarks.retrieval.filing import file_all, home
from benchmarks.retrieval.readers.locomo import read
from castle import Castle

TOP_K = 10
LAYERS: Mapping[str, object] = {
    "episodic": "episodic",
    "semantic": "semantic",
    "all layers": None,
}
_TURN = re.compile(r"D\d+:\d+")


def measure(
    file: Path, work: Path, *, conversations: int | None, questions: int | None, facts: int | None
) -> dict[str, Any]:
    """Ask the questions of LoCoMo of each layer, before and after a cycle of consolidation."""
    collection = read(file)
    collection = replace(collection, cases=collection.cases[:conversations])
    observed = {one["sample_id"]: one["observation"] for one in json.loads(file.read_text(encoding="utf-8"))}
    file_all(collection, work, lambda line: print(line, file=sys.stderr))
    hits: dict[str, list[bool]] = {}
    times: dict[str, list[float]] = {}
    cycles: list[dict[str, Any]] = []
    saved = 0
    for case in collection.cases:
        place = work / "mind" / case.name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(home(work, collection, case) / "palace", place)
        with Castle(place) as castle:
            turns = _turns(castle)
            saved += _believe(castle, observed[case.name], turns, facts)
            for when in ("before", "after"):
                _ask(castle, case, questions, turns, when, hits, times)
                if when == "before":
                    started = time.perf_counter()
                    told = castle.memory_consolidate()
                    seconds = time.perf_counter() - started
                    kept = ("total_scored", "forget_candidates", "dimmed", "patterns_detected")
                    cycles.append({**{key: told[key] for key in kept}, "seconds": round(seconds, 2)})
        print(f"locomo {case.name}: {cycles[-1]}", file=sys.stderr)
    return {
        "conversations": len(collection.cases),
        "questions": len(next(iter(hits.values()), [])),
        "facts": saved,
        "recall_any@10": {name: round(statistics.mean(values), 4) for name, values in hits.items()},
        "milliseconds_p50": {name: round(statistics.median(values), 1) for name, values in times.items()},
        "cycles": cycles,
    }


def _turns(castle: Castle) -> dict[str, list[str]]:
    """Return the drawers of each turn."""
    found: dict[str, list[str]] = {}
    with castle._palace().ledger.read() as cx:
        query = "SELECT message_id, id FROM drawers WHERE kind = 'message' AND state = 'current'"
        for turn, id_ in cx.exec_driver_sql(query):
            found.setdefault(turn, []).append(id_)
    return found


def _believe(
    castle: Castle, observed: Mapping[str, Any], turns: Mapping[str, list[str]], most: int | None
) -> int:
    """Save observations as facts that cite their turns; returns how many."""
    told = [
        (text, _TURN.findall(str(evidence)))
        for by_speaker in observed.values()
        for observations in by_speaker.values()
        for text, evidence in observations
    ]
    saved = 0
    for text, evidence in told[:most]:
        cited = [id_ for turn in evidence for id_ in turns.get(turn, ())]
        if cited:
            options = {"confidence": 0.7, "source_references": cited, "wing": "talk"}
            castle.memory_save(text, "semantic", options)
            saved += 1
    return saved


def _ask(
    castle: Castle,
    case: Case,
    most: int | None,
    turns: Mapping[str, list[str]],
    when: str,
    hits: dict[str, list[bool]],
    times: dict[str, list[float]],
) -> None:
    asked: Sequence[Question] = [question for question in case.questions if question.answered][:most]
    for name, layer in LAYERS.items():
        for question in asked:
            gold = {id_ for turn in question.turns for id_ in turns.get(turn.rpartition("#")[2], ())}
            options = {"top_k": TOP_K, **({} if layer is None else {"memory_type": layer})}
            started = time.perf_counter()
            memories = castle.memory_recall(question.text, options).memories
            times.setdefault(f"{name}, {when}", []).append(1000 * (time.perf_counter() - started))
            shown = {id_ for memory in memories for id_ in (memory.id, *memory.drawer_ids)}
            hits.setdefault(f"{name}, {when}", []).append(bool(gold & shown))
