"""What each stage and signal is worth: the same questions with one more, and with each one left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.retrieval.asking import Answer
from benchmarks.retrieval.filing import Say, file_all
from benchmarks.retrieval.running import Run, castle_answers, read, record

OFF: Mapping[str, object] = {
    "search_mode": "fast", "reranker": "off", "recency_max_boost": 1.0, "weight_kg": 0.0,
    "weight_names": 0.0, "weight_times": 0.0, "weight_phrases": 0.0, "weight_voice": 0.0,
}  # fmt: skip
SIGNALS = ("weight_names", "weight_times", "weight_phrases", "weight_voice")


def _without(settings: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in names}


def rows() -> dict[str, Mapping[str, object]]:
    """Return ways to search by name, each as the settings that differ from the defaults.

    The first build up, each with one stage more than the one before; the others leave one thing out of the
    whole, or put the other kind of it in its place.
    """
    graph = _without(OFF, "weight_kg")
    signals = _without(graph, *SIGNALS)
    recent = _without(signals, "recency_max_boost")
    return {
        "dense alone": {**OFF, "weight_sparse": 0.0},
        "lexical alone": {**OFF, "weight_dense": 0.0},
        "both, fused by rank": {**OFF, "fusion": "rrf"},
        "both, fused by score": OFF,
        "+ graph": graph,
        "+ names, times, phrases": signals,
        "+ recency": recent,
        "+ cross-encoder = fast": {"search_mode": "fast"},
        "+ quality = standard": {"search_mode": "standard"},
        "+ Soar = everything": {},
        "without dense": {"weight_dense": 0.0},
        "without lexical": {"weight_sparse": 0.0},
        "without graph": {"weight_kg": 0.0},
        "without names": {"weight_names": 0.0},
        "without times": {"weight_times": 0.0},
        "without phrases": {"weight_phrases": 0.0},
        "without voice": {"weight_voice": 0.0},
        "without recency": {"recency_max_boost": 1.0},
        "without cross-encoder": {"reranker": "off"},
        "fused by rank": {"fusion": "rrf"},
        "priors of full strength": {"priors": "compat"},
        "demoting what says little new": {"info_weight_enabled": True},
    }


def execute(run: Run, say: Say) -> tuple[dict[str, Any], dict[str, list[Answer]]]:
    """Measure every row on one question set; the answers themselves are not kept."""
    collection = read(run)
    filed = file_all(collection, run.work, say, again=run.refile)
    measured = []
    for name, settings in rows().items():
        say(name)
        one = replace(run, settings={**settings, **run.settings})
        measured.append(castle_answers(one, collection, filed, say, name)[1])
    found = record(run, collection, filed, measured)
    found["about"]["command"] = found["about"]["command"].replace(" run ", " ablate ", 1)
    return {**found, "ablation": {name: dict(settings) for name, settings in rows().items()}}, {}
