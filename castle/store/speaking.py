"""Which drawers speak of entities: as evidence for facts about them, or by mentioning them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, case, func, literal, select, union_all

from castle.records import Scope
from castle.store.entity_tables import mentions, registry
from castle.store.graph_reading import LIVE, holds_clause
from castle.store.graph_tables import evidence, triples
from castle.store.graph_values import Span
from castle.store.reading import scope_clause
from castle.store.schema import drawers, sources

EXPIRED_WEIGHT = 0.5
"""What a fact counts that does not hold, beside one that does."""
MENTION_WEIGHT = 0.25
"""What it counts that a drawer only mentions an entity."""
MOST_MENTIONS = 200
"""Drawers that mention an entity; of more, it says nothing about one that it does."""


def drawers_about(
    cx: Connection, entities: Sequence[str], now: int, scope: Scope, limit: int
) -> list[tuple[str, str, float]]:
    """Return id, hash and weight of the drawers in scope that speak of entities, at most ``limit``.

    An entity counts 1 in a drawer that is evidence for a fact about it that holds ``now``, less for one that
    does not, least where it is only mentioned; a fact that was retracted counts nothing. First come those of
    the greatest sum, then those recorded last, then by id.
    """
    weight = case((holds_clause(Span(now, now + 1)), 1.0), else_=EXPIRED_WEIGHT)
    parts = [
        select(
            column.label("entity"),
            evidence.c.drawer.label("drawer"),
            weight.label("weight"),
            evidence.c.recorded_at.label("recorded_at"),
        )
        .select_from(triples.join(evidence, evidence.c.triple == triples.c.id))
        .where(column.in_(list(entities)), LIVE, evidence.c.drawer.is_not(None))
        for column in (triples.c.subject, triples.c.object)
    ]
    seldom = _seldom_mentioned(cx, entities)
    if seldom:
        parts.append(
            select(mentions.c.entity, mentions.c.drawer, literal(MENTION_WEIGHT), literal(0)).where(
                mentions.c.entity.in_(seldom)
            )
        )
    said = union_all(*parts).subquery()
    each = (
        select(
            said.c.drawer,
            func.max(said.c.weight).label("weight"),
            func.max(said.c.recorded_at).label("recorded_at"),
        )
        .group_by(said.c.drawer, said.c.entity)
        .subquery()
    )
    total = func.sum(each.c.weight)
    query = (
        select(drawers.c.id, drawers.c.sha256, total)
        .select_from(
            each.join(drawers, drawers.c.rid == each.c.drawer).join(sources, sources.c.id == drawers.c.source)
        )
        .where(scope_clause(scope))
        .group_by(drawers.c.rid)
        .order_by(
            total.desc(),
            func.max(each.c.recorded_at).desc(),
            drawers.c.filed_at.desc(),
            drawers.c.id,
        )
        .limit(limit)
    )
    return [(id_, digest.hex(), float(sum_)) for id_, digest, sum_ in cx.execute(query)]


def _seldom_mentioned(cx: Connection, entities: Sequence[str]) -> list[str]:
    """Return the entities, forgotten ones left out, that few enough drawers mention."""
    seldom = []
    for entity in entities:
        known = registry.c.entity == entity
        listed = select(mentions.c.drawer).where(mentions.c.entity == entity).limit(MOST_MENTIONS + 1)
        count = select(func.count()).select_from(listed.subquery())
        there = select(registry.c.entity).where(and_(known, registry.c.forgotten_at.is_(None)))
        if cx.execute(there).first() and (cx.execute(count).scalar() or 0) <= MOST_MENTIONS:
            seldom.append(entity)
    return seldom
