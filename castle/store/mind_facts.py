"""Facts that are believed: stated once each, with a confidence that changes through one function only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from castle.errors import NotFoundError, UsageError
from castle.store.graph_tables import triples
from castle.store.ledger import to_json
from castle.store.mind_index import index
from castle.store.mind_rows import cite, new_id, norm_hash, note_change, said_again, sources_of, standing
from castle.store.mind_tables import mem_fact_triples, mem_facts, mem_history
from castle.store.mind_values import DERIVED, ORIGINS, Fact, Origin, Source

RESISTANCE = {"plastic": 1.0, "semi_stable": 0.5, "locked": 0.25}
"""How much of a step down a fact takes, by how firmly it is believed."""
LOCKED_PAUSE = 24 * 3_600_000_000
"""Microseconds during which a locked fact takes one step down at the most."""
REINFORCEMENT = 0.05
"""Confidence that one more witness brings."""
INSIGHT_CAP = 0.75
"""The most that is believed of an insight that nobody has verified."""


def add_fact(
    cx: Connection,
    statement: str,
    *,
    confidence: float,
    origin: Origin,
    actor: str,
    now: int,
    drawer: str | None = None,
    wing: str | None = None,
    sources: Iterable[Source] = (),
    tags: Sequence[str] = (),
    metadata: Mapping[str, object] | None = None,
    near: str | None = None,
) -> Fact:
    """Believe a statement; the same one again, in the same wing, is another witness of the one there is.

    ``near`` names a fact that says as much in other words, if the caller knows of one. The statement is as it
    may be shown: its secrets are masked. A derived fact without sources is marked as unsupported.
    """
    if origin not in ORIGINS:
        raise UsageError(f"origin {origin!r} is none of {', '.join(ORIGINS)}")
    if not statement.strip():
        raise UsageError("the statement is empty")
    given = tuple(sources)
    digest = norm_hash(statement)
    known = standing(cx, "fact", digest, wing) or near
    if known is not None:
        witnesses = given if drawer is None else (*given, Source("drawer", drawer))
        reinforce(cx, known, witnesses, reason="said again", actor=actor, now=now)
        _merge(cx, known, confidence if origin not in DERIVED else 0.0, tags, metadata, actor, now)
        return get_fact(cx, known)
    confidence = clamp(confidence)
    if origin == "insight":
        confidence = min(confidence, INSIGHT_CAP)
    id_ = new_id("fact")
    cx.execute(
        insert(mem_facts).values(
            id=id_,
            statement=statement,
            confidence=confidence,
            origin=origin,
            unsupported=origin in DERIVED and not given,
            drawer=drawer,
            wing=wing,
            norm_hash=digest,
            state="active",
            pinned=False,
            reason="",
            access_count=0,
            tags_json=to_json(list(tags)),
            metadata_json=to_json(dict(metadata or {})),
            created_at=now,
            updated_at=now,
        )
    )
    cite(cx, "fact", id_, given, now)
    index(cx, "fact", id_, statement)
    note_change(
        cx, "fact", id_, "confidence", "", confidence, reason=f"origin {origin}", actor=actor, now=now
    )
    return get_fact(cx, id_)


def get_fact(cx: Connection, id_: str) -> Fact:
    """Return a fact; raises NotFoundError."""
    row = cx.execute(select(mem_facts).where(mem_facts.c.id == id_)).first()
    if row is None:
        raise NotFoundError(f"the mind holds no fact {id_}")
    return to_fact(row)


def facts(
    cx: Connection,
    *,
    origins: Sequence[str] = (),
    wing: str | None = None,
    include_expired: bool = False,
    include_cold: bool = False,
    limit: int = 1_000,
    after: str = "",
    ids: Sequence[str] | None = None,
) -> list[Fact]:
    """Return facts in the order of their ids, from the one after ``after``; those of a wing hold there.

    A fact that holds everywhere is one of every wing.
    """
    query = select(mem_facts).where(mem_facts.c.id > after)
    if origins:
        query = query.where(mem_facts.c.origin.in_(origins))
    if wing is not None:
        query = query.where((mem_facts.c.wing == wing) | mem_facts.c.wing.is_(None))
    if not include_expired:
        query = query.where(mem_facts.c.invalidated_at.is_(None))
    if not include_cold:
        query = query.where(mem_facts.c.state != "cold")
    if ids is not None:
        query = query.where(mem_facts.c.id.in_(ids))
    return [to_fact(row) for row in cx.execute(query.order_by(mem_facts.c.id).limit(limit))]


def change_confidence(
    cx: Connection,
    id_: str,
    delta: float,
    *,
    reason: str,
    actor: str,
    now: int,
    evidence: Sequence[str] = (),
) -> float:
    """Raise or lower what is believed of a fact and return it; there is no other way to change it.

    The result is kept in [0, 1]. A step down counts for a half of a semi-stable fact, and for a quarter of a
    locked one, which takes one in 24 hours. Raises UsageError where no reason is given.
    """
    if not reason.strip():
        raise UsageError("a confidence changes for a reason: say which")
    found = get_fact(cx, id_)
    stage = found.lifecycle
    if delta < 0:
        if stage == "locked" and _weakened_since(cx, id_, now - LOCKED_PAUSE):
            return found.confidence
        delta *= RESISTANCE[stage]
    wanted = clamp(found.confidence + delta)
    if found.origin == "insight" and delta > 0:
        wanted = max(found.confidence, min(wanted, INSIGHT_CAP))
    if wanted == found.confidence:
        return wanted
    cx.execute(update(mem_facts).where(mem_facts.c.id == id_).values(confidence=wanted, updated_at=now))
    note_change(
        cx,
        "fact",
        id_,
        "confidence",
        found.confidence,
        wanted,
        reason=reason,
        actor=actor,
        now=now,
        evidence=evidence,
    )
    return wanted


def reinforce(
    cx: Connection, id_: str, sources: Iterable[Source], *, reason: str, actor: str, now: int
) -> float:
    """Believe a fact more for every witness that it did not have; the same source again says nothing new.

    Drawers of one session are one witness.
    """
    found = get_fact(cx, id_)
    before = {s.session for s in sources_of(cx, "fact", id_) if s.session}
    if found.drawer is not None:
        sources = [source for source in sources if source.id != found.drawer]
    fresh = cite(cx, "fact", id_, sources, now)
    supporting = [source for source in fresh if source.role == "supports"]
    sessions = {source.session for source in supporting if source.session} - before
    count = len(sessions) + sum(not source.session for source in supporting)
    if not count:
        return found.confidence
    evidence = [source.id for source in supporting]
    delta = REINFORCEMENT * count
    if found.unsupported:
        cx.execute(update(mem_facts).where(mem_facts.c.id == id_).values(unsupported=False))
    return change_confidence(cx, id_, delta, reason=reason, actor=actor, now=now, evidence=evidence)


def set_statement(
    cx: Connection, id_: str, statement: str, *, reason: str, actor: str, now: int, drawer: str | None = None
) -> Fact:
    """Give a fact other words; what it said before stays in its history."""
    before = get_fact(cx, id_)
    values: dict[str, Any] = {"statement": statement, "norm_hash": norm_hash(statement), "updated_at": now}
    if drawer is not None:
        values["drawer"] = drawer
    cx.execute(update(mem_facts).where(mem_facts.c.id == id_).values(**values))
    index(cx, "fact", id_, statement)
    note_change(
        cx, "fact", id_, "statement", before.statement, statement, reason=reason, actor=actor, now=now
    )
    return get_fact(cx, id_)


def link_triple(cx: Connection, fact: str, triple: str) -> None:
    """Tie a fact to one of the graph, which ends with it; raises NotFoundError for an unknown one."""
    if cx.execute(select(triples.c.id).where(triples.c.id == triple).limit(1)).first() is None:
        raise NotFoundError(f"the graph has no fact {triple!r}: `castle kg query NAME --json` shows ids")
    cx.execute(insert(mem_fact_triples).prefix_with("OR IGNORE").values(fact=fact, triple=triple))


def clamp(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return a number within its bounds; raises UsageError for one that is none."""
    if not value == value:
        raise UsageError("a confidence, weight or valence is a number")
    return min(max(float(value), low), high)


def to_fact(row: Any) -> Fact:
    """Return a row as a value."""
    return Fact(
        row.id,
        row.statement,
        row.confidence,
        row.origin,
        row.unsupported,
        row.drawer,
        row.wing,
        row.state,
        row.pinned,
        row.invalidated_at,
        row.reason,
        row.access_count,
        row.last_access_at,
        tuple(json.loads(row.tags_json)),
        json.loads(row.metadata_json),
        row.created_at,
        row.updated_at,
    )


def _merge(
    cx: Connection,
    id_: str,
    confidence: float,
    tags: Sequence[str],
    metadata: Mapping[str, object] | None,
    actor: str,
    now: int,
) -> None:
    """Take over what a second statement of a fact brings: more confidence, tags, further metadata."""
    found = get_fact(cx, id_)
    if confidence > found.confidence:
        delta = clamp(confidence) - found.confidence
        change_confidence(cx, id_, delta, reason="stated with more confidence", actor=actor, now=now)
    said_again(cx, "fact", found, tags, metadata, actor=actor, now=now)


def _weakened_since(cx: Connection, id_: str, moment: int) -> bool:
    """Whether a fact was believed less after some step since a moment."""
    query = select(mem_history.c.old, mem_history.c.new).where(
        mem_history.c.kind == "fact",
        mem_history.c.id == id_,
        mem_history.c.what == "confidence",
        mem_history.c.at > moment,
    )
    return any(old and float(new) < float(old) for old, new in cx.execute(query))
