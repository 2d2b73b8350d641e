"""What the tables of the mind give and take: values that cross module borders.

Times are microseconds since the epoch (UTC); confidences and weights are in [0, 1], valences in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["drawer", "fact", "procedure", "hypothesis", "preference", "reflection", "working"]
Retention = Literal["active", "dim", "cold"]
Origin = Literal["user", "seed", "import", "pattern", "insight", "preference"]
Lifecycle = Literal["plastic", "semi_stable", "locked"]
Relation = Literal["associated_with", "causes", "contradicts", "is_a", "part_of"]

KINDS: tuple[Kind, ...] = (
    "drawer",
    "fact",
    "procedure",
    "hypothesis",
    "preference",
    "reflection",
    "working",
)
RETENTION: tuple[Retention, ...] = ("active", "dim", "cold")
ORIGINS: tuple[Origin, ...] = ("user", "seed", "import", "pattern", "insight", "preference")
DERIVED: tuple[Origin, ...] = ("pattern", "insight", "preference")
"""Origins of what a machine made; such a thing names its sources or is marked as unsupported."""
RELATIONS: tuple[Relation, ...] = ("associated_with", "causes", "contradicts", "is_a", "part_of")
EPISODE_KINDS = ("message", "note", "diary")
"""Kinds of drawers that are experience; files of a project are none."""

FACT_BOUNDS = (0.5, 0.8)
"""Confidences from which a fact is semi-stable and locked."""
SKILL_BOUNDS = (0.7, 0.9)
"""Weights and confidences from which a procedure or a preference is semi-stable and locked."""


def lifecycle(value: float, bounds: tuple[float, float] = FACT_BOUNDS) -> Lifecycle:
    """Return the stage that a confidence or weight stands for, by one of the two tables of bounds."""
    return "locked" if value >= bounds[1] else "semi_stable" if value >= bounds[0] else "plastic"


@dataclass(frozen=True, slots=True)
class Source:
    """What something rests on: a drawer or another thing of the mind; ``session`` tells witnesses apart."""

    kind: str
    id: str
    role: Literal["supports", "contradicts"] = "supports"
    weight: float = 1.0
    session: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of something in the mind: the property ``what`` went from ``old`` to ``new``."""

    kind: str
    id: str
    what: str
    old: str
    new: str
    reason: str
    actor: str
    evidence: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that is believed; ``wing`` None means everywhere, ``drawer`` is where it was stated."""

    id: str
    statement: str
    confidence: float
    origin: str
    unsupported: bool
    drawer: str | None
    wing: str | None
    state: str
    pinned: bool
    invalidated_at: int | None
    reason: str
    access_count: int
    last_access_at: int | None
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    created_at: int
    updated_at: int

    @property
    def lifecycle(self) -> Lifecycle:
        """How firmly it is believed."""
        return lifecycle(self.confidence)

    @property
    def expired(self) -> bool:
        """Whether it is known not to hold any more."""
        return self.invalidated_at is not None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A way of doing something, with the condition that brings it to mind and how it went so far."""

    id: str
    content: str
    trigger: str
    task_type: str
    weight: float
    successes: int
    failures: int
    variant_of: str | None
    preference: str | None
    origin: str
    unsupported: bool
    drawer: str | None
    wing: str | None
    state: str
    pinned: bool
    invalidated_at: int | None
    reason: str
    last_triggered_at: int | None
    last_outcome_at: int | None
    access_count: int
    last_access_at: int | None
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    created_at: int
    updated_at: int

    @property
    def lifecycle(self) -> Lifecycle:
        """How firmly it is held to."""
        return lifecycle(self.weight, SKILL_BOUNDS)

    @property
    def expired(self) -> bool:
        """Whether it is known not to hold any more."""
        return self.invalidated_at is not None

    @property
    def uses(self) -> int:
        """How many outcomes are known."""
        return self.successes + self.failures

    @property
    def estimate(self) -> float:
        """The mean of the Beta posterior of its rate of success, (s + 1) / (s + f + 2) from a flat prior."""
        return (self.successes + 1) / (self.uses + 2)

    @property
    def lower(self) -> float:
        """The lower bound of Wilson's 95 % interval of the rate of success (Wilson 1927); 0 without uses."""
        n = self.uses
        if not n:
            return 0.0
        z, p = 1.959964, self.successes / n
        centre = p + z * z / (2 * n)
        spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (centre - spread) / (1 + z * z / n))


@dataclass(frozen=True, slots=True)
class Episode:
    """A drawer that is experience, with what may change about it; ``text`` is served text."""

    rid: int
    id: str
    text: str
    wing: str
    room: str
    kind: str
    role: str
    authored_at: int
    filed_at: int
    session: str = ""
    task: str = ""
    origin: str = ""
    valence: float = 0.0
    valence_confidence: float = 0.0
    valence_source: str = ""
    outcome_valence: float | None = None
    score: float | None = None
    low_cycles: int = 0
    state: str = "active"
    pinned: bool = False
    was_in_wm: bool = False
    invalidated_at: int | None = None
    reason: str = ""
    access_count: int = 0
    last_access_at: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def expired(self) -> bool:
        """Whether it is known not to hold any more."""
        return self.invalidated_at is not None


@dataclass(frozen=True, slots=True)
class Working:
    """Something that is being worked with; ``content`` is exact and shown with its secrets masked."""

    id: str
    session: str
    agent: str
    wing: str
    content: str
    base_priority: float
    relevance: float
    last_accessed_at: int
    was_referenced: bool
    task_completed: bool
    hypothesis: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    created_at: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One end of an association, as seen from the other; ``weight`` is what is left of it by now."""

    kind: str
    id: str
    relation: str
    weight: float
    origin: str
    outgoing: bool
