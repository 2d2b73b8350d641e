"""Reading the knowledge graph: which facts held when, on what evidence, and which drawers speak of whom."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    not_,
    or_,
    select,
    union_all,
)

from castle.errors import NotFoundError, UsageError
from castle.records import Scope
from castle.store.graph_tables import entities, entity_aliases, evidence, triples
from castle.store.graph_values import (
    Direction,
    Evidence,
    EvidenceState,
    Fact,
    Facts,
    Span,
    clean_name,
    entity_id,
    state_at,
)
from castle.store.ledger import batches
from castle.store.reading import AnyRow, scope_clause
from castle.store.schema import drawers, sources

_BEST_FIRST: tuple[EvidenceState, ...] = ("current", "stated", "superseded", "forgotten")
_SUGGESTED_FROM = 5_000

_subjects = entities.alias("subjects")
_objects = entities.alias("objects")
_FROM = triples.join(_subjects, _subjects.c.id == triples.c.subject).join(
    _objects, _objects.c.id == triples.c.object
)

LIVE = triples.c.ended_at.is_(None)
"""The version of a fact that the graph holds now."""


def recorded_clause(moment: int | None) -> ColumnElement[bool]:
    """Return the condition on ``triples`` for what the graph said at a recording time, None being now."""
    if moment is None:
        return LIVE
    return and_(triples.c.recorded_at <= moment, or_(LIVE, triples.c.ended_at > moment))


def holds_clause(span: Span) -> ColumnElement[bool]:
    """Return the condition on ``triples`` for the facts that held at any instant of a span."""
    return and_(
        or_(triples.c.valid_from.is_(None), triples.c.valid_from < span.end),
        or_(triples.c.valid_to.is_(None), triples.c.valid_to > span.start),
    )


def visible_clause() -> ColumnElement[bool]:
    """Return the condition on ``triples`` for the facts with evidence that is not forgotten."""
    query = (
        select(evidence.c.rid)
        .select_from(evidence.outerjoin(drawers, drawers.c.rid == evidence.c.drawer))
        .where(
            evidence.c.triple == triples.c.id,
            or_(evidence.c.drawer.is_(None), drawers.c.state != "forgotten"),
        )
    )
    return query.exists()


def about_clause(entity: str, direction: Direction = "both") -> ColumnElement[bool]:
    """Return the condition on ``triples`` for the facts about an entity id."""
    if direction == "outgoing":
        return triples.c.subject == entity
    if direction == "incoming":
        return triples.c.object == entity
    return or_(triples.c.subject == entity, triples.c.object == entity)


def current_first(now: int) -> tuple[ColumnElement[object], ...]:
    """Return an order: what holds, what will, what did; each by its start."""
    rank = case((triples.c.valid_to <= now, 2), (triples.c.valid_from > now, 1), else_=0)
    return (rank, *BY_START)


BY_START: tuple[ColumnElement[object], ...] = (
    triples.c.valid_from.asc().nulls_last(),
    triples.c.created_at,
    triples.c.rid,
)


def page(
    cx: Connection,
    condition: ColumnElement[bool],
    now: int,
    *,
    order: Sequence[ColumnElement[object]] = BY_START,
    limit: int | None = None,
    offset: int = 0,
    entity: str | None = None,
) -> Facts:
    """Return one page of the visible facts that meet a condition, how many there are, how many are hidden."""
    if offset < 0 or (limit is not None and limit < 1):
        raise UsageError(f"limit {limit} and offset {offset} name no page: at least 1 and 0")
    seen = visible_clause()
    total = cx.execute(select(func.count()).select_from(triples).where(condition, seen)).scalar_one()
    hidden = cx.execute(select(func.count()).select_from(triples).where(condition, not_(seen))).scalar_one()
    query = _versions().where(condition, seen).order_by(*order).limit(limit).offset(offset)
    found = _facts(cx, list(cx.execute(query)), now, entity)
    name = None if entity is None else entity_name(cx, entity)
    return Facts(name, total, offset, hidden, tuple(found))


def fact(cx: Connection, rid: int, now: int) -> Fact:
    """Return one version of a fact, visible or not."""
    return _facts(cx, list(cx.execute(_versions().where(triples.c.rid == rid))), now, None)[0]


def facts_where(cx: Connection, condition: ColumnElement[bool], now: int) -> list[Fact]:
    """Return every version that meets a condition, hidden ones too, by start."""
    return _facts(cx, list(cx.execute(_versions().where(condition).order_by(*BY_START))), now, None)


_RESOLVE = union_all(
    select(entities.c.id).where(entities.c.id == bindparam("name")),
    select(entity_aliases.c.entity).where(entity_aliases.c.alias == bindparam("name")),
)


def resolve(cx: Connection, name: str) -> str | None:
    """Return the id of the entity that a name or an alias stands for, None when the graph knows neither."""
    found: str | None = cx.execute(_RESOLVE, {"name": entity_id(name)}).scalar()
    return found


def one_entity(cx: Connection, name: str) -> str:
    """Return the id of the entity a name stands for; raises NotFoundError with names like it."""
    clean = clean_name("entity", name)
    found = resolve(cx, clean)
    if found is not None:
        return found
    begins = entities.c.id.startswith(entity_id(clean)[:1], autoescape=True)
    rows = cx.execute(select(entities.c.id, entities.c.name).where(begins).limit(_SUGGESTED_FROM))
    names = {id_: known for id_, known in rows}
    near = difflib.get_close_matches(entity_id(clean), names, n=3, cutoff=0.6)
    meant = ", ".join(names[id_] for id_ in near)
    hint = f"did you mean {meant}?" if near else "`castle kg timeline` lists what it does"
    raise NotFoundError(f"the graph knows nothing of {clean}: {hint}")


def entity_name(cx: Connection, id_: str) -> str:
    """Return what an entity is called."""
    name: str = cx.execute(select(entities.c.name).where(entities.c.id == id_)).scalar_one()
    return name


def drawers_by_entities(
    cx: Connection,
    entity_ids: Sequence[str],
    limit: int,
    offset: int,
    *,
    scope: Scope | None = None,
    at: int | None = None,
) -> list[str]:
    """Return ids of the drawers that are evidence for facts about entities, best first.

    A drawer ranks by how many of the entities it speaks of, then by how lately it was recorded, then by id.
    ``scope`` is applied before the limit (None: everything not forgotten); ``at`` leaves out facts that did
    not hold at that moment.
    """
    parts = [
        select(column.label("entity"), triples.c.id.label("triple")).where(
            column.in_(list(entity_ids)), LIVE, *(() if at is None else (holds_clause(Span(at, at + 1)),))
        )
        for column in (triples.c.subject, triples.c.object)
    ]
    matched = union_all(*parts).subquery()
    if scope is None:
        inside = and_(drawers.c.seq.is_not(None), drawers.c.state != "forgotten")
    else:
        inside = scope_clause(scope)
    query = (
        select(drawers.c.id)
        .select_from(
            matched.join(evidence, evidence.c.triple == matched.c.triple)
            .join(drawers, drawers.c.rid == evidence.c.drawer)
            .join(sources, sources.c.id == drawers.c.source)
        )
        .where(inside)
        .group_by(drawers.c.id)
        .order_by(
            func.count(matched.c.entity.distinct()).desc(),
            func.max(evidence.c.recorded_at).desc(),
            drawers.c.id,
        )
        .limit(limit)
        .offset(offset)
    )
    return [id_ for (id_,) in cx.execute(query)]


def evidence_of(cx: Connection, ids: Sequence[str]) -> dict[str, tuple[Evidence, ...]]:
    """Return the statements each fact rests on, in the order they were recorded."""
    found: dict[str, list[Evidence]] = {id_: [] for id_ in ids}
    state = case((evidence.c.drawer.is_(None), literal("stated")), else_=drawers.c.state).label("state")
    for batch in batches(list(found)):
        query = (
            select(evidence, drawers.c.id.label("drawer_id"), state)
            .select_from(evidence.outerjoin(drawers, drawers.c.rid == evidence.c.drawer))
            .where(evidence.c.triple.in_(batch))
            .order_by(evidence.c.rid)
        )
        for row in cx.execute(query):
            found[row.triple].append(
                Evidence(
                    row.drawer_id,
                    row.state,
                    row.source,
                    row.adapter,
                    row.actor,
                    row.confidence,
                    row.valid_from_text,
                    row.valid_to_text,
                    row.recorded_at,
                    row.confirmed_at,
                )
            )
    return {id_: tuple(items) for id_, items in found.items()}


def _versions() -> Select[*tuple[Any, ...]]:
    names = (_subjects.c.name.label("subject_name"), _objects.c.name.label("object_name"))
    return select(*triples.c, *names).select_from(_FROM)


def _facts(cx: Connection, rows: Sequence[AnyRow], now: int, entity: str | None) -> list[Fact]:
    grounds = evidence_of(cx, [row.id for row in rows])
    return [_fact(row, grounds[row.id], now, entity) for row in rows]


def _fact(row: AnyRow, grounds: tuple[Evidence, ...], now: int, entity: str | None) -> Fact:
    seen = [item for item in grounds if item.state != "forgotten"] or grounds
    direction: Direction | None = None
    if entity is not None:
        direction = "outgoing" if row.subject == entity else "incoming"
    return Fact(
        id=row.id,
        subject=row.subject_name,
        predicate=row.predicate,
        object=row.object_name,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        valid_from_text=row.valid_from_text,
        valid_to_text=row.valid_to_text,
        state=state_at(row.valid_from, row.valid_to, now),
        confidence=max(item.confidence for item in seen),
        evidence_state=min((item.state for item in seen), key=_BEST_FIRST.index),
        evidence=grounds,
        created_at=row.created_at,
        recorded_at=row.recorded_at,
        recorded_by=row.recorded_by,
        ended_at=row.ended_at,
        ended_by=row.ended_by,
        direction=direction,
        subject_id=row.subject,
        object_id=row.object,
    )
