"""One shape for what the mind holds, whatever layer it is of; what saving and recalling give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from castle.clock import to_iso
from castle.mind.conditions.verifying import condition_of
from castle.mind.working import attention, zone
from castle.store.mind_episodes import get_episode
from castle.store.mind_facts import get_fact
from castle.store.mind_ingest import PENDING, Queued
from castle.store.mind_procedures import get_procedure
from castle.store.mind_rows import sources_of
from castle.store.mind_values import Episode, Fact, Procedure, Source, Working
from castle.store.mind_working import get_item
from castle.text.served import mask_secrets

LAYERS = {"working": "working", "drawer": "episodic", "fact": "semantic", "procedure": "procedural"}
"""The layer of each kind of thing that is remembered."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Something in the mind. ``content`` is served text; times are ISO 8601 with offset, "" for none.

    ``why`` says in which lists a recall found it, at which rank; ``drawer_ids`` where it can be read word for
    word, ``conflicts`` what contradicts it.
    """

    id: str
    content: str
    memory_type: str
    created_at: str
    attention_score: float = 1.0
    base_priority: float = 1.0
    relevance: float = 1.0
    last_accessed_at: str = ""
    was_referenced: bool = False
    task_completed: bool = False
    zone: str = ""
    valence: float = 0.0
    consolidation_score: float = 0.0
    was_in_wm: bool = False
    confidence: float = 0.0
    lifecycle: str = "plastic"
    falsifiable_condition: Mapping[str, object] | None = None
    session_id: str = ""
    task_id: str = ""
    event_at: str = ""
    invalidated_at: str = ""
    tags: tuple[str, ...] = ()
    source_references: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    layer: str = ""
    origin: str = ""
    state: str = "active"
    pinned: bool = False
    unsupported: bool = False
    wing: str = ""
    drawer_ids: tuple[str, ...] = ()
    score: float = 0.0
    why: Mapping[str, object] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()

    @property
    def expired(self) -> bool:
        """Whether it is known not to hold any more."""
        return bool(self.invalidated_at)


def key_of(memory: Memory) -> tuple[str, str]:
    """Return the kind and id under which a memory is stored."""
    if memory.state == PENDING:
        return PENDING, memory.id
    kinds = {layer: kind for kind, layer in LAYERS.items()}
    return kinds[memory.layer], memory.id


def memory_of(cx: Connection, kind: str, id_: str, salt: bytes, now: int) -> Memory:
    """Return one thing of the mind; raises NotFoundError."""
    if kind == "working":
        return of_working(get_item(cx, id_), salt, now)
    if kind == "fact":
        return of_fact(get_fact(cx, id_), sources_of(cx, "fact", id_), condition_of(cx, "fact", id_))
    if kind == "procedure":
        return of_procedure(get_procedure(cx, id_), sources_of(cx, "procedure", id_))
    return of_episode(get_episode(cx, id_))


def of_working(item: Working, salt: bytes, now: int) -> Memory:
    """Return an item of working memory."""
    return Memory(
        id=item.id,
        content=mask_secrets(item.content, salt),
        memory_type="working",
        created_at=to_iso(item.created_at),
        attention_score=attention(item, now),
        base_priority=item.base_priority,
        relevance=item.relevance,
        last_accessed_at=to_iso(item.last_accessed_at),
        was_referenced=item.was_referenced,
        task_completed=item.task_completed,
        zone=zone(item, now),
        session_id=item.session,
        tags=item.tags,
        metadata=item.metadata,
        layer="working",
        origin="insight" if item.hypothesis else "user",
        wing=item.wing,
    )


def of_episode(episode: Episode) -> Memory:
    """Return a drawer as an episode."""
    return Memory(
        id=episode.id,
        content=episode.text,
        memory_type="episodic",
        created_at=to_iso(episode.filed_at),
        event_at=to_iso(episode.authored_at),
        valence=episode.valence,
        consolidation_score=episode.score or 0.0,
        was_in_wm=episode.was_in_wm,
        session_id=episode.session,
        task_id=episode.task,
        last_accessed_at=_time(episode.last_access_at),
        invalidated_at=_time(episode.invalidated_at),
        tags=episode.tags,
        metadata={**episode.metadata, **_outcome(episode)},
        layer="episodic",
        origin=episode.origin or episode.role or episode.kind,
        state=episode.state,
        pinned=episode.pinned,
        wing=episode.wing,
        drawer_ids=(episode.id,),
    )


def of_pending(one: Queued, salt: bytes, wing: str = "") -> Memory:
    """Return words of a session whose transcript is not filed yet, as an episode that has no drawer."""
    return Memory(
        id=one.event,
        content=mask_secrets(one.text, salt),
        memory_type="episodic",
        created_at=to_iso(one.at),
        session_id=one.session,
        layer="episodic",
        origin=str(one.payload.get("role") or "user"),
        state="pending",
        wing=wing,
    )


def of_fact(
    fact: Fact, sources: Sequence[Source] = (), condition: Mapping[str, object] | None = None
) -> Memory:
    """Return a fact, with what it rests on and the condition under which it is stale."""
    return Memory(
        id=fact.id,
        content=fact.statement,
        memory_type="semantic",
        created_at=to_iso(fact.created_at),
        confidence=fact.confidence,
        lifecycle=fact.lifecycle,
        falsifiable_condition=condition,
        last_accessed_at=_time(fact.last_access_at),
        invalidated_at=_time(fact.invalidated_at),
        tags=fact.tags,
        source_references=tuple(source.id for source in sources if source.kind != "session"),
        metadata=fact.metadata,
        layer="semantic",
        origin=fact.origin,
        state=fact.state,
        pinned=fact.pinned,
        unsupported=fact.unsupported,
        wing=fact.wing or "",
        drawer_ids=_drawers(fact.drawer, [s.id for s in sources if s.kind == "drawer"]),
    )


def of_procedure(procedure: Procedure, sources: Sequence[Source] = ()) -> Memory:
    """Return a procedure; how it went stands in the metadata, the multiplied weight beside the estimate."""
    told: dict[str, Any] = {
        "trigger_condition": procedure.trigger or None,
        "task_type": procedure.task_type or None,
        "activation_weight": procedure.weight,
        "success_count": procedure.successes,
        "failure_count": procedure.failures,
        "estimate": round(procedure.estimate, 4),
        "lower_bound": round(procedure.lower, 4),
        "variant_of": procedure.variant_of,
        "last_triggered_at": _time(procedure.last_triggered_at) or None,
        "last_outcome_at": _time(procedure.last_outcome_at) or None,
        "source_episode_ids": [source.id for source in sources if source.kind == "drawer"],
    }
    return Memory(
        id=procedure.id,
        content=procedure.content,
        memory_type="procedural",
        created_at=to_iso(procedure.created_at),
        lifecycle=procedure.lifecycle,
        last_accessed_at=_time(procedure.last_access_at),
        invalidated_at=_time(procedure.invalidated_at),
        tags=procedure.tags,
        source_references=tuple(source.id for source in sources if source.kind != "session"),
        metadata={**procedure.metadata, **{key: value for key, value in told.items() if value is not None}},
        layer="procedural",
        origin=procedure.origin,
        state=procedure.state,
        pinned=procedure.pinned,
        unsupported=procedure.unsupported,
        wing=procedure.wing or "",
        drawer_ids=_drawers(procedure.drawer, [s.id for s in sources if s.kind == "drawer"]),
    )


def _drawers(stated: str | None, sources: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([stated, *sources] if stated else sources))


def _outcome(episode: Episode) -> dict[str, object]:
    return {} if episode.outcome_valence is None else {"outcome_valence": episode.outcome_valence}


def _time(micros: int | None) -> str:
    return "" if micros is None else to_iso(micros)
