"""Stage 5: Soar productions mark candidates with tags, and each tag is a factor on the score."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from castle.search.candidates import Candidate, ranked
from castle.search.intent import query_intent, room_type
from castle.search.soar_engine import Fields, SoarEngine, SoarMissing, SoarUnavailable, shared_engine

if TYPE_CHECKING:
    from castle.store.palace import Palace

__all__ = [
    "CLAMP",
    "MULTIPLIERS",
    "Mindful",
    "ReadyRules",
    "Rules",
    "SoarContext",
    "SoarEngine",
    "SoarFacts",
    "SoarMissing",
    "SoarUnavailable",
    "age_seconds",
    "combined",
    "context_fields",
    "memory_fields",
    "project_of_environment",
    "shared_engine",
    "soar",
]

MULTIPLIERS: Mapping[str, float] = {
    "recency-boost": 1.25,
    "same-project": 1.15,
    "entity-match": 1.30,
    "type-match": 1.25,
    "pinned": 1.20,
    "fresh-fact": 1.10,
    "stale-fact": 0.70,
    "procedure-hit": 1.10,
}
CLAMP = (0.1, 10.0)
WORKING_MEMORY = 50
"""Candidates that the rules see; the rest keep their scores."""
RECENT_SECONDS = 7 * 24 * 3600
UNDATED_SECONDS = 2**62

_log = logging.getLogger(__name__)
_said: set[str] = set()


class Rules(Protocol):
    """What tags memories; ``SoarEngine`` is the real one."""

    @property
    def own_rules(self) -> bool:
        """Whether the rules are the user's own."""

    def ask(self, context: Fields, memories: Sequence[Fields]) -> Sequence[tuple[str, ...]]:
        """Return the tags of each memory."""


class ReadyRules(Rules, Protocol):
    """Rules that can be loaded before they are asked."""

    def prepare(self) -> None:
        """Begin to load, without waiting; raises SoarUnavailable."""


class Mindful:
    """Rules that learn beside the rest what the mind holds about each memory; see castle-mind.soar."""

    def __init__(self, rules: ReadyRules, palace: Palace) -> None:
        self._rules = rules
        self._palace = palace

    @property
    def own_rules(self) -> bool:
        """Whether the rules are the user's own."""
        return self._rules.own_rules

    def prepare(self) -> None:
        """Begin to load."""
        self._rules.prepare()

    def ask(self, context: Fields, memories: Sequence[Fields]) -> Sequence[tuple[str, ...]]:
        """Return the tags of each memory."""
        from castle.store.mind_marks import marks_of

        ids = [str(dict(memory)["id"]) for memory in memories]
        with self._palace.ledger.read() as cx:
            marks = marks_of(cx, ids, self._palace.ledger.clock())
        told = [[*memory, *marks.get(id_, ())] for id_, memory in zip(ids, memories, strict=True)]
        return self._rules.ask(context, told)


@dataclass(frozen=True, slots=True)
class SoarFacts:
    """What the rules learn of one drawer. ``authored_at`` is in microseconds; 0 and None mean unknown."""

    id: str
    wing: str
    room: str
    authored_at: int | None
    entity_match: bool
    score: float


@dataclass(frozen=True, slots=True)
class SoarContext:
    """What the rules learn of the search. ``now`` is in microseconds since the epoch."""

    project: str
    query: str
    now: int


def project_of_environment() -> str:
    """Return CASTLE_PROJECT, or "default"."""
    return os.environ.get("CASTLE_PROJECT") or "default"


def age_seconds(authored_at: int | None, now: int) -> int:
    """Return whole seconds from ``authored_at`` to ``now``: 0 for the future, 2^62 without a date."""
    if not authored_at:
        return UNDATED_SECONDS
    return max(0, (now - authored_at) // 1_000_000)


def context_fields(context: SoarContext) -> Fields:
    """Lay out ``^context`` as the productions see it."""
    intent = query_intent(context.query)
    return [("project", context.project), *([("query-type", intent)] if intent else [])]


def memory_fields(facts: SoarFacts, now: int) -> Fields:
    """Lay out one ``^memory`` as the productions see it.

    A drawer is recent when it was written less than seven days before ``now``; seven days exactly is old.
    """
    age = age_seconds(facts.authored_at, now)
    kind = room_type(facts.room)
    return [
        ("id", facts.id),
        ("project", facts.wing),
        ("score", float(facts.score)),
        ("age-seconds", age),
        ("recently-accessed", "true" if age < RECENT_SECONDS else "false"),
        ("entity-match", "true" if facts.entity_match else "false"),
        *([("drawer-type", kind)] if kind else []),
    ]


def combined(factors: Iterable[float]) -> float:
    """Multiply factors and clamp the product to [0.1, 10]; without factors it is 1."""
    low, high = CLAMP
    return min(high, max(low, math.prod(factors)))


def soar(
    candidates: Sequence[Candidate],
    facts: Mapping[str, SoarFacts],
    context: SoarContext,
    engine: Rules,
    strength: float = 1.0,
) -> list[Candidate]:
    """Boost candidates by the tags that the rules give them and rank them again.

    score = min(1, score · combined(multipliers of the tags) ** strength), in the order of uncapped scores.
    ``strength`` 0 changes nothing, 1 takes the multipliers as they are; the user's own rules always have 1.
    Candidates without facts and those after the first 50 keep their scores. A tag without a multiplier is
    shown and warned of once, and changes no score. Raises SoarUnavailable with the reason when there are no
    tags.
    """
    seen = [candidate for candidate in candidates if candidate.id in facts][:WORKING_MEMORY]
    if len(candidates) > WORKING_MEMORY:
        _warn_once("limit", f"Soar sees the first {WORKING_MEMORY} candidates; the others keep their scores")
    tags: dict[str, tuple[str, ...]] = {}
    if seen:
        memories = [memory_fields(facts[candidate.id], context.now) for candidate in seen]
        found = engine.ask(context_fields(context), memories)
        tags = {candidate.id: found[index] for index, candidate in enumerate(seen)}
    power = 1.0 if engine.own_rules else strength
    boosted = [_boosted(candidate, tags.get(candidate.id, ()), power) for candidate in candidates]
    # The cap comes after the sort: two candidates above 1 keep their order.
    boosted.sort(key=lambda candidate: -candidate.score)
    return ranked([candidate.but(score=min(1.0, candidate.score)) for candidate in boosted], "soar")


def _boosted(candidate: Candidate, tags: tuple[str, ...], power: float) -> Candidate:
    for tag in tags:
        if tag not in MULTIPLIERS:
            _warn_once(
                f"tag {tag}", f"the Soar rules give the tag {tag!r}, which has no factor and is ignored"
            )
    factors = {tag: MULTIPLIERS[tag] for tag in tags if tag in MULTIPLIERS}
    boost = combined(factors.values()) ** power
    return candidate.but(
        score=candidate.score * boost,
        soar_tags=tags,
        soar_boost=boost,
        score_pre_soar=candidate.score,
        boosts={**candidate.boosts, **{f"soar:{tag}": factor**power for tag, factor in factors.items()}},
    )


def _warn_once(key: str, message: str) -> None:
    """Warn once in the life of the process: a server would repeat it at every search."""
    if key not in _said:
        _said.add(key)
        _log.warning("%s", message)
