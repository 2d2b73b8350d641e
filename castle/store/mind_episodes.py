"""Episodes: drawers that are experience, each with a row of what may change about it.

A conversation, a note or a diary entry is an episode whether it has a row or not; the row comes with the
first thing that there is to say about it. Where a fact or a procedure was stated is none: the fact is what is
remembered of it. Files of a project are none either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, update

from castle.errors import NotFoundError
from castle.store.ledger import batches, to_json
from castle.store.mind_facts import clamp
from castle.store.mind_rows import note_change, resting_on
from castle.store.mind_state import episode_row
from castle.store.mind_tables import mem_episodes, mem_facts, mem_procedures
from castle.store.mind_values import EPISODE_KINDS, Episode
from castle.store.reading import drawers_by_id, served
from castle.store.schema import drawers, sources
from castle.store.use_tables import pins

ASSERTION = "assertion"
"""The origin of a drawer in which a fact or a procedure was stated."""

_FROM = (
    drawers.join(sources, sources.c.id == drawers.c.source)
    .outerjoin(mem_episodes, mem_episodes.c.drawer == drawers.c.rid)
    .outerjoin(pins, pins.c.drawer == drawers.c.rid)
)
_COLUMNS = (
    drawers.c.rid,
    drawers.c.id,
    drawers.c.wing,
    drawers.c.room,
    drawers.c.kind,
    drawers.c.role,
    drawers.c.authored_at,
    drawers.c.filed_at,
    sources.c.key.label("source_key"),
    pins.c.pinned_at,
    *(column for column in mem_episodes.c if column.name not in ("projection", "created_at")),
)


def episodes(
    cx: Connection,
    *,
    after_rid: int = 0,
    limit: int = 1_000,
    states: Sequence[str] = ("active", "dim"),
    wing: str | None = None,
    include_expired: bool = False,
    texts: bool = True,
) -> list[Episode]:
    """Return episodes in the order of filing, after ``after_rid``; without texts it is quicker."""
    query = select(*_COLUMNS).select_from(_FROM).where(is_episode(), drawers.c.rid > after_rid)
    query = query.where(_in_states(states))
    if wing is not None:
        query = query.where(drawers.c.wing == wing)
    if not include_expired:
        query = query.where(mem_episodes.c.invalidated_at.is_(None))
    return _read(cx, query.order_by(drawers.c.rid).limit(limit), texts)


def episodes_by_id(cx: Connection, ids: Sequence[str], *, texts: bool = True) -> dict[str, Episode]:
    """Return those drawers as episodes, of whatever kind and state they are; unknown ones are left out."""
    found: dict[str, Episode] = {}
    for part in batches(ids):
        query = select(*_COLUMNS).select_from(_FROM).where(drawers.c.id.in_(part))
        found.update((episode.id, episode) for episode in _read(cx, query, texts))
    return found


def get_episode(cx: Connection, id_: str) -> Episode:
    """Return one drawer as an episode; raises NotFoundError."""
    found = episodes_by_id(cx, [id_]).get(id_)
    if found is None:
        raise NotFoundError(f"no drawer {id_}: `castle search` shows ids")
    return found


def count(cx: Connection, wing: str | None = None, states: Sequence[str] = ("active", "dim")) -> int:
    """Return how many episodes there are in these states."""
    query = select(func.count()).select_from(_FROM).where(is_episode(), _in_states(states))
    if wing is not None:
        query = query.where(drawers.c.wing == wing)
    return int(cx.execute(query.where(mem_episodes.c.invalidated_at.is_(None))).scalar_one())


def is_episode() -> ColumnElement[bool]:
    """Return the condition by which a drawer, joined with its row if it has one, is an episode."""
    return and_(
        drawers.c.seq.is_not(None),
        drawers.c.state == "current",
        drawers.c.kind.in_(EPISODE_KINDS),
        or_(mem_episodes.c.drawer.is_(None), mem_episodes.c.origin != ASSERTION),
    )


def describe(cx: Connection, id_: str, now: int, **values: Any) -> None:
    """Say something of an episode: session, task, origin, was_in_wm, tags, metadata."""
    rid = episode_row(cx, id_, now)
    for name in ("tags", "metadata"):
        if name in values:
            values[f"{name}_json"] = to_json(values.pop(name))
    cx.execute(update(mem_episodes).where(mem_episodes.c.drawer == rid).values(**values))


def set_valence(
    cx: Connection, id_: str, valence: float, confidence: float, source: str, *, actor: str, now: int
) -> bool:
    """Note what an episode feels like, in [-1, 1]; what the caller of a save said is never written over."""
    rid = episode_row(cx, id_, now)
    mine = mem_episodes.c.drawer == rid
    before = cx.execute(select(mem_episodes.c.valence, mem_episodes.c.valence_source).where(mine)).one()
    if before.valence_source == "user" and source != "user":
        return False
    value = clamp(valence, -1.0, 1.0)
    values = {"valence": value, "valence_confidence": clamp(confidence), "valence_source": source}
    cx.execute(update(mem_episodes).where(mine).values(**values))
    if value != before.valence:
        reason = f"by {source}"
        note_change(cx, "drawer", id_, "valence", before.valence, value, reason=reason, actor=actor, now=now)
    return True


def set_outcome(cx: Connection, id_: str, outcome: float, *, reason: str, actor: str, now: int) -> None:
    """Note how what an episode tells of went, from -1 (failed) to 1 (worked)."""
    rid = episode_row(cx, id_, now)
    mine = mem_episodes.c.drawer == rid
    before = cx.execute(select(mem_episodes.c.outcome_valence).where(mine)).scalar()
    value = clamp(outcome, -1.0, 1.0)
    cx.execute(update(mem_episodes).where(mine).values(outcome_valence=value))
    note_change(cx, "drawer", id_, "outcome_valence", before, value, reason=reason, actor=actor, now=now)


def set_scores(cx: Connection, scores: Mapping[str, tuple[float, int]], now: int) -> None:
    """Note the score of the last consolidation and how many cycles in a row it was low, by drawer id."""
    for id_, (score, low) in scores.items():
        rid = episode_row(cx, id_, now)
        mine = mem_episodes.c.drawer == rid
        cx.execute(update(mem_episodes).where(mine).values(score=score, low_cycles=low))


def set_projection(cx: Connection, id_: str, projection: bytes, spec: str, now: int) -> None:
    """Keep the sparse projection of an episode's vector; ``spec`` says by which embedder and matrix."""
    rid = episode_row(cx, id_, now)
    values = {"projection": projection, "projection_spec": spec}
    cx.execute(update(mem_episodes).where(mem_episodes.c.drawer == rid).values(**values))


def projections(cx: Connection, ids: Sequence[str], spec: str) -> dict[str, bytes]:
    """Return the sparse projections that are kept of episodes, those of one embedder and matrix."""
    found: dict[str, bytes] = {}
    for part in batches(ids):
        query = (
            select(drawers.c.id, mem_episodes.c.projection)
            .join(mem_episodes, mem_episodes.c.drawer == drawers.c.rid)
            .where(drawers.c.id.in_(part), mem_episodes.c.projection_spec == spec)
        )
        found.update((id_, blob) for id_, blob in cx.execute(query) if blob is not None)
    return found


def stated_by(cx: Connection, ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the facts and procedures, (kind, id), that were stated in these drawers."""
    found: dict[str, list[tuple[str, str]]] = {}
    for kind, table in (("fact", mem_facts), ("procedure", mem_procedures)):
        for part in batches(ids):
            for id_, drawer in cx.execute(select(table.c.id, table.c.drawer).where(table.c.drawer.in_(part))):
                found.setdefault(drawer, []).append((kind, id_))
    for part in batches([id_ for id_ in ids if id_ not in found]):
        asserting = select(drawers.c.id).join(mem_episodes, mem_episodes.c.drawer == drawers.c.rid)
        inside = asserting.where(drawers.c.id.in_(part), mem_episodes.c.origin == ASSERTION)
        for owner, id_, drawer in resting_on(cx, "drawer", list(cx.execute(inside).scalars())):
            if owner in ("fact", "procedure"):
                found.setdefault(drawer, []).append((owner, id_))
    return found


def _in_states(states: Sequence[str]) -> ColumnElement[bool]:
    named = mem_episodes.c.state.in_(states)
    return or_(named, mem_episodes.c.drawer.is_(None)) if "active" in states else named


def _read(cx: Connection, query: Select[Any], texts: bool) -> list[Episode]:
    rows = list(cx.execute(query))
    held = drawers_by_id(cx, [row.id for row in rows]) if texts else {}
    return [_episode(row, served(held[row.id]) if row.id in held else "") for row in rows]


def _episode(row: Any, text: str) -> Episode:
    session = row.session or (row.source_key if row.kind == "message" else "")
    known = row.drawer is not None
    return Episode(
        rid=row.rid,
        id=row.id,
        text=text,
        wing=row.wing,
        room=row.room,
        kind=row.kind,
        role=row.role,
        authored_at=row.authored_at,
        filed_at=row.filed_at,
        session=session,
        pinned=row.pinned_at is not None,
        **(_known(row) if known else {}),
    )


def _known(row: Any) -> dict[str, Any]:
    return {
        "task": row.task,
        "origin": row.origin,
        "valence": row.valence,
        "valence_confidence": row.valence_confidence,
        "valence_source": row.valence_source,
        "outcome_valence": row.outcome_valence,
        "score": row.score,
        "low_cycles": row.low_cycles,
        "state": row.state,
        "was_in_wm": row.was_in_wm,
        "invalidated_at": row.invalidated_at,
        "reason": row.reason,
        "access_count": row.access_count,
        "last_access_at": row.last_access_at,
        "tags": tuple(json.loads(row.tags_json)),
        "metadata": json.loads(row.metadata_json),
    }
