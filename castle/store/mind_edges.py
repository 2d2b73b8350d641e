"""Associations between things of the mind, and activation that spreads along them.

Edges are weighted, fade when they are not used, and several relations may join the same two things. They are
read one step at a time, because several processes write them. What a fact or a procedure rests on joins them,
too, as do facts of the graph that hold now, tunnels and halls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update

from castle.errors import UsageError
from castle.store.graph_tables import evidence, triples
from castle.store.mind_places import by_places
from castle.store.mind_tables import mem_edges, mem_fact_triples, mem_sources
from castle.store.mind_values import RELATIONS, Edge
from castle.store.schema import drawers

COLD_DAYS, FADING_DAYS = 7.0, 30.0
"""Days without use after which an edge begins to fade, and those in which it falls to 1/e from then on."""
SOURCE_WEIGHT = 0.5
"""How strongly a thing is joined to what it rests on."""
TRIPLE_WEIGHT = 0.6
"""How strongly facts of the graph join what they are about, and what tells them."""
MOST_TRIPLES = 50
HOPS, DECAY, THRESHOLD = 2, 0.3, 0.01
STRONG_CONTRADICTION = -0.3
_DAY = 86_400 * 1e6

Key = tuple[str, str]


def add_edge(
    cx: Connection, source: Key, target: Key, relation: str, weight: float, *, origin: str, now: int
) -> None:
    """Join two things, (kind, id) each; the same relation again takes the new weight, in [-1, 1]."""
    if relation not in RELATIONS:
        raise UsageError(f"relation {relation!r} is none of {', '.join(RELATIONS)}")
    if not -1.0 <= weight <= 1.0:
        raise UsageError(f"weight {weight} is not between -1 and 1")
    if source == target:
        raise UsageError(f"{source[1]} cannot be joined to itself")
    same = _same(source, target, relation)
    changed = update(mem_edges).where(same).values(weight=weight, origin=origin)
    if not cx.execute(changed).rowcount:
        cx.execute(
            insert(mem_edges).values(
                source_kind=source[0],
                source_id=source[1],
                target_kind=target[0],
                target_id=target[1],
                relation=relation,
                weight=weight,
                origin=origin,
                created_at=now,
            )
        )


def remove_edge(cx: Connection, source: Key, target: Key, relation: str) -> bool:
    """Take an association away; false where there was none."""
    return cx.execute(delete(mem_edges).where(_same(source, target, relation))).rowcount > 0


def faded(weight: float, used_at: int, now: int) -> float:
    """Return what is left of a weight: times exp(-(days - 7) / 30) once it was not used for 7 days."""
    days = (now - used_at) / _DAY
    return weight if days <= COLD_DAYS else weight * math.exp(-(days - COLD_DAYS) / FADING_DAYS)


def neighbours(cx: Connection, kind: str, id_: str, now: int) -> list[Edge]:
    """Return what a thing is joined to, either way, the strongest first."""
    here = and_(mem_edges.c.source_kind == kind, mem_edges.c.source_id == id_)
    there = and_(mem_edges.c.target_kind == kind, mem_edges.c.target_id == id_)
    found = [
        _edge(row, outgoing=(row.source_kind, row.source_id) == (kind, id_), now=now)
        for row in cx.execute(select(mem_edges).where(or_(here, there)))
    ]
    owned = select(mem_sources).where(mem_sources.c.owner_kind == kind, mem_sources.c.owner_id == id_)
    found += [
        Edge(row.source_kind, row.source_id, "part_of", _worth(row), "source", True)
        for row in cx.execute(owned)
    ]
    owning = select(mem_sources).where(mem_sources.c.source_kind == kind, mem_sources.c.source_id == id_)
    found += [
        Edge(row.owner_kind, row.owner_id, "part_of", _worth(row), "source", False)
        for row in cx.execute(owning)
    ]
    found += _in_graph(cx, kind, id_, now) + by_places(cx, kind, id_)
    return sorted(found, key=lambda edge: (-edge.weight, edge.kind, edge.id, edge.relation))


def holding(now: int) -> ColumnElement[bool]:
    """Return the condition on ``triples`` for facts of the graph that hold now."""
    return and_(
        triples.c.ended_at.is_(None),
        func.coalesce(triples.c.valid_from, now) <= now,
        or_(triples.c.valid_to.is_(None), triples.c.valid_to > now),
    )


def _in_graph(cx: Connection, kind: str, id_: str, now: int) -> list[Edge]:
    """Return what the facts of the graph that hold now join a thing to, the latest of them first.

    A drawer that is their evidence and a fact that is linked to them are joined to what they are about.
    """
    latest = triples.c.recorded_at.desc(), triples.c.rid.desc()
    told = {
        "drawer": select(evidence.c.triple).join(drawers).where(drawers.c.id == id_),
        "fact": select(mem_fact_triples.c.triple).where(mem_fact_triples.c.fact == id_),
    }
    ends = select(triples.c.id, triples.c.subject, triples.c.object).where(holding(now))
    if kind == "entity":
        ends = ends.where(or_(triples.c.subject == id_, triples.c.object == id_))
    elif kind in told:
        ends = ends.where(triples.c.id.in_(told[kind]))
    else:
        return []
    rows = cx.execute(ends.order_by(*latest).limit(MOST_TRIPLES)).all()
    keys = {("entity", end) for row in rows for end in (row.subject, row.object)}
    if kind == "entity":
        about = [row.id for row in rows]
        spoken = select(drawers.c.id).join(evidence).where(evidence.c.triple.in_(about)).distinct()
        keys |= {("drawer", one) for one in cx.execute(spoken.limit(MOST_TRIPLES)).scalars()}
        linked = select(mem_fact_triples.c.fact).where(mem_fact_triples.c.triple.in_(about)).distinct()
        keys |= {("fact", one) for one in cx.execute(linked.limit(MOST_TRIPLES)).scalars()}
    keys.discard((kind, id_))
    return [Edge(*key, "associated_with", TRIPLE_WEIGHT, "graph", True) for key in keys]


def activate(
    cx: Connection,
    seeds: Mapping[Key, float],
    now: int,
    *,
    hops: int = HOPS,
    decay: float = DECAY,
    threshold: float = THRESHOLD,
) -> dict[Key, float]:
    """Spread activation from seeds and return what was reached, best first; the seeds are not part of it.

    A step passes on value x weight x decay; of several ways the strongest counts, and what falls below the
    threshold ends there. Edges of weight 0 or less pass nothing on.
    """
    reached: dict[Key, float] = {}
    front = dict(seeds)
    for _ in range(hops):
        following: dict[Key, float] = {}
        for key, value in sorted(front.items()):
            if key[0] == "hall":
                continue  # nothing but rooms is behind it, and to find these takes long
            for edge in neighbours(cx, *key, now):
                passed = value * edge.weight * decay
                other = (edge.kind, edge.id)
                if edge.weight <= 0 or passed < threshold or other in seeds:
                    continue
                if passed > reached.get(other, 0.0):
                    reached[other] = following[other] = passed
        front = following
    return dict(sorted(reached.items(), key=lambda item: (-item[1], item[0])))


def contradictions(cx: Connection, keys: Sequence[Key], now: int) -> list[tuple[Key, Key]]:
    """Return the pairs among some things that contradict each other: by an edge of -0.3 or less."""
    wanted = set(keys)
    ids = sorted({id_ for _, id_ in wanted})
    query = select(mem_edges).where(
        mem_edges.c.relation == "contradicts", mem_edges.c.source_id.in_(ids), mem_edges.c.target_id.in_(ids)
    )
    found = set()
    for row in cx.execute(query):
        one, other = (row.source_kind, row.source_id), (row.target_kind, row.target_id)
        weight = -abs(faded(row.weight, row.last_traversed_at or row.created_at, now))
        if one in wanted and other in wanted and weight <= STRONG_CONTRADICTION:
            found.add((min(one, other), max(one, other)))
    return sorted(found)


def mark_traversed(cx: Connection, keys: Sequence[Key], now: int) -> None:
    """Note that associations led to these."""
    for kind, id_ in keys:
        target = and_(mem_edges.c.target_kind == kind, mem_edges.c.target_id == id_)
        cx.execute(update(mem_edges).where(target).values(last_traversed_at=now))


def sizes(cx: Connection) -> tuple[int, int]:
    """Return how many things are joined and by how many edges."""
    ends = select(mem_edges.c.source_kind, mem_edges.c.source_id).union(
        select(mem_edges.c.target_kind, mem_edges.c.target_id)
    )
    nodes = cx.execute(select(func.count()).select_from(ends.subquery())).scalar_one()
    return int(nodes), int(cx.execute(select(func.count()).select_from(mem_edges)).scalar_one())


def _same(source: Key, target: Key, relation: str) -> Any:
    return and_(
        mem_edges.c.source_kind == source[0],
        mem_edges.c.source_id == source[1],
        mem_edges.c.target_kind == target[0],
        mem_edges.c.target_id == target[1],
        mem_edges.c.relation == relation,
    )


def _edge(row: Any, *, outgoing: bool, now: int) -> Edge:
    kind, id_ = (row.target_kind, row.target_id) if outgoing else (row.source_kind, row.source_id)
    weight = faded(row.weight, row.last_traversed_at or row.created_at, now)
    return Edge(kind, id_, row.relation, weight, row.origin, outgoing)


def _worth(row: Any) -> float:
    return SOURCE_WEIGHT * float(row.weight) * (1 if row.role == "supports" else -1)
