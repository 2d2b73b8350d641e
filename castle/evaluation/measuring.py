"""Asking probes, and counting which drawers came back."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from castle.evaluation.probes import Kind, Probe
from castle.records import Hit, SearchResult

Ask = Callable[[str], SearchResult]
Progress = Callable[[str, int, int], None]

DEPTH = 5
MOST_MISSES = 20
ABSENT_SHARE = 0.4
"""Probes without an answer, for each one with."""


@dataclass(frozen=True, slots=True)
class Part:
    """Probes of one kind: the shares whose drawer came first and among the first five.

    ``unsure`` is the share of which the search said that nothing may match.
    """

    kind: Kind
    probes: int
    r1: float
    r5: float
    unsure: float


@dataclass(frozen=True, slots=True)
class Missed:
    """A probe whose drawer was not among the first five."""

    drawer: str
    kind: Kind
    question: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What became of all probes; shares are in [0, 1].

    ``r1`` and ``r5`` are over the ``probes`` that have an answer. ``false_confidence`` is the share of the
    ``absent`` questions without one that were answered as if there were. ``unsure`` is the share of the
    others of which the search said that nothing may match. ``ms`` is the median time of a search.
    """

    probes: int
    r1: float
    r5: float
    unsure: float
    absent: int
    false_confidence: float
    ms: float
    parts: tuple[Part, ...]
    missed: tuple[Missed, ...]
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    probe: Probe
    rank: int
    confident: bool
    milliseconds: float


def measure(
    answerable: Sequence[Probe], absent: Iterable[Probe], ask: Ask, progress: Progress | None = None
) -> Evaluation:
    """Ask every probe, and absent ones while there are any; ``ask`` returns at least the first five hits.

    A topic whose words stand in a hit was not absent, so another one is asked for in its place.
    """
    degraded: dict[str, None] = {}
    wanted = max(1, round(len(answerable) * ABSENT_SHARE))
    total = len(answerable) + wanted
    asked = []
    for probe in answerable:
        asked.append(_put(probe, ask, degraded)[0])
        if progress is not None:
            progress("asking", len(asked), total)
    refused: list[_Asked] = []
    for probe in absent:
        if len(refused) == wanted:
            break
        answer, hits = _put(probe, ask, degraded)
        if not any(_speaks_of(hit, probe) for hit in hits):
            refused.append(answer)
        if progress is not None:
            progress("asking", len(asked) + len(refused), total)
    kinds = dict.fromkeys(one.probe.kind for one in asked)
    return Evaluation(
        probes=len(asked),
        r1=_share(one.rank == 1 for one in asked),
        r5=_share(one.rank > 0 for one in asked),
        unsure=_share(not one.confident for one in asked),
        absent=len(refused),
        false_confidence=_share(one.confident for one in refused),
        ms=round(statistics.median(one.milliseconds for one in [*asked, *refused]), 1) if asked else 0.0,
        parts=tuple(_part(kind, [one for one in asked if one.probe.kind == kind]) for kind in kinds),
        missed=tuple(
            Missed(one.probe.drawer, one.probe.kind, one.probe.question) for one in asked if not one.rank
        )[:MOST_MISSES],
        degraded=tuple(degraded),
    )


def _put(probe: Probe, ask: Ask, degraded: dict[str, None]) -> tuple[_Asked, tuple[Hit, ...]]:
    result = ask(probe.question)
    degraded.update(dict.fromkeys(result.degraded))
    hits = result.hits[:DEPTH]
    rank = next((rank for rank, hit in enumerate(hits, start=1) if probe.drawer in (hit.id, *hit.copies)), 0)
    spent = 1000 * sum(stage.seconds for stage in result.stages)
    return _Asked(probe, rank, result.confident and bool(hits), spent), hits


def _speaks_of(hit: Hit, probe: Probe) -> bool:
    text = hit.text.casefold()
    return all(word in text for word in probe.topic)


def _part(kind: Kind, asked: Sequence[_Asked]) -> Part:
    return Part(
        kind,
        len(asked),
        _share(one.rank == 1 for one in asked),
        _share(one.rank > 0 for one in asked),
        _share(not one.confident for one in asked),
    )


def _share(given: Iterable[bool]) -> float:
    found = list(given)
    return round(sum(found) / len(found), 4) if found else 0.0
