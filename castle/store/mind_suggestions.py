"""Facts of the graph that something believed contradicts: it is suggested to end them, and never done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, func, or_, select

from castle.store.graph_tables import entities, triples
from castle.store.mind_edges import STRONG_CONTRADICTION, holding
from castle.store.mind_tables import mem_edges, mem_facts

MOST_SUGGESTED = 20
SHOWN = 200
"""Characters of a statement that are shown."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A fact that is believed, the fact of the graph that it contradicts, and the command that ends that."""

    fact: str
    statement: str
    triple: str
    says: str
    command: str


def suggestions(
    cx: Connection,
    now: int,
    *,
    facts: Sequence[str] | None = None,
    wing: str | None = None,
    limit: int = MOST_SUGGESTED,
) -> list[Suggestion]:
    """Return what is suggested, the strongest first: of some facts, or of those that hold in a wing.

    Only what is believed speaks against something, and only what holds now can be ended.
    """
    ends = mem_edges.c.source_kind, mem_edges.c.target_kind
    fact_id = case((ends[0] == "fact", mem_edges.c.source_id), else_=mem_edges.c.target_id)
    triple_id = case((ends[0] == "triple", mem_edges.c.source_id), else_=mem_edges.c.target_id)
    between = or_(*(and_(ends[0] == one, ends[1] == other) for one, other in _ENDS))
    subjects, objects = entities.alias(), entities.alias()
    query = (
        select(
            mem_facts.c.id,
            mem_facts.c.statement,
            triples.c.id.label("triple"),
            subjects.c.name.label("subject"),
            triples.c.predicate,
            objects.c.name.label("object"),
        )
        .select_from(mem_edges)
        .join(mem_facts, mem_facts.c.id == fact_id)
        .join(triples, triples.c.id == triple_id)
        .join(subjects, subjects.c.id == triples.c.subject)
        .join(objects, objects.c.id == triples.c.object)
        .where(between, mem_edges.c.relation == "contradicts")
        .where(func.abs(mem_edges.c.weight) >= -STRONG_CONTRADICTION, holding(now))
        .where(mem_facts.c.invalidated_at.is_(None), mem_facts.c.state != "cold")
    )
    if facts is not None:
        query = query.where(mem_facts.c.id.in_(facts))
    if wing is not None:
        query = query.where((mem_facts.c.wing == wing) | mem_facts.c.wing.is_(None))
    order = func.abs(mem_edges.c.weight).desc(), mem_facts.c.id, triples.c.id
    return [
        Suggestion(
            row.id,
            row.statement if len(row.statement) <= SHOWN else f"{row.statement[: SHOWN - 1]}…",
            row.triple,
            f"{row.subject} {row.predicate} {row.object}",
            _ending(row.subject, row.predicate, row.object),
        )
        for row in cx.execute(query.distinct().order_by(*order).limit(limit))
    ]


_ENDS = (("fact", "triple"), ("triple", "fact"))


def _ending(*triple: str) -> str:
    quoted = [shlex.quote(part) for part in triple]
    dashed = any(part.startswith("-") for part in triple)
    return " ".join(["castle kg invalidate", *(["--"] if dashed else []), *quoted])
