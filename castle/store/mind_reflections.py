"""Reflections: what was thought about how something went. They are derived, and no episodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from castle.errors import NotFoundError
from castle.store.ledger import to_json
from castle.store.mind_index import index
from castle.store.mind_rows import cite, new_id
from castle.store.mind_tables import mem_reflections
from castle.store.mind_values import Source


@dataclass(frozen=True, slots=True)
class Reflection:
    """One reflection: ``proposals`` are changes that it suggests, ``applied_at`` when they were made."""

    id: str
    task: str
    outcome: str
    text: str
    dimensions: tuple[str, ...]
    analysis: Mapping[str, Any]
    proposals: Sequence[Mapping[str, Any]]
    unsupported: bool
    wing: str | None
    applied_at: int | None
    created_at: int


def add_reflection(
    cx: Connection,
    *,
    task: str,
    outcome: str,
    text: str,
    dimensions: Sequence[str],
    analysis: Mapping[str, Any],
    proposals: Sequence[Mapping[str, Any]],
    sources: Iterable[Source],
    wing: str | None,
    applied: bool,
    now: int,
) -> str:
    """Keep a reflection and return its id; one that cites nothing is marked as unsupported."""
    id_ = new_id("reflection")
    given = tuple(sources)
    cx.execute(
        insert(mem_reflections).values(
            id=id_,
            task=task,
            outcome=outcome,
            text=text,
            dimensions_json=to_json(list(dimensions)),
            analysis_json=to_json(dict(analysis)),
            proposals_json=to_json([dict(one) for one in proposals]),
            origin="reflection",
            unsupported=not given,
            wing=wing,
            applied_at=now if applied else None,
            created_at=now,
        )
    )
    cite(cx, "reflection", id_, given, now)
    index(cx, "reflection", id_, text)
    return id_


def set_proposals(cx: Connection, id_: str, proposals: Sequence[Mapping[str, Any]]) -> None:
    """Note what became of the changes that a reflection suggests."""
    values = {"proposals_json": to_json([dict(one) for one in proposals])}
    cx.execute(update(mem_reflections).where(mem_reflections.c.id == id_).values(**values))


def get_reflection(cx: Connection, id_: str) -> Reflection:
    """Return a reflection; raises NotFoundError."""
    row = cx.execute(select(mem_reflections).where(mem_reflections.c.id == id_)).first()
    if row is None:
        raise NotFoundError(f"the mind holds no reflection {id_}")
    return _reflection(row)


def recent_reflections(cx: Connection, limit: int = 10) -> list[Reflection]:
    """Return the last reflections, the latest first."""
    query = select(mem_reflections).order_by(mem_reflections.c.created_at.desc(), mem_reflections.c.id)
    return [_reflection(row) for row in cx.execute(query.limit(limit))]


def count_reflections(cx: Connection) -> tuple[int, int]:
    """Return how many reflections there are, and of how many the proposals were applied."""
    applied = func.count().filter(mem_reflections.c.applied_at.is_not(None))
    total, done = cx.execute(select(func.count(), applied).select_from(mem_reflections)).one()
    return int(total), int(done)


def _reflection(row: Any) -> Reflection:
    return Reflection(
        row.id,
        row.task,
        row.outcome,
        row.text,
        tuple(json.loads(row.dimensions_json)),
        json.loads(row.analysis_json),
        json.loads(row.proposals_json),
        row.unsupported,
        row.wing,
        row.applied_at,
        row.created_at,
    )
