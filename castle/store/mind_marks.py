"""What the mind holds about drawers that a search found: pins, facts and ways to do things."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, select

from castle.store.ledger import batches
from castle.store.mind_tables import mem_conditions, mem_facts, mem_procedures
from castle.store.schema import drawers
from castle.store.use_tables import pins

FRESH_DAYS = 7
LEAST_WEIGHT = 0.5
"""The weight of a procedure that has not failed more than it worked."""
_DAY = 86_400_000_000

Marks = list[tuple[str, str]]


def marks_of(cx: Connection, ids: Sequence[str], now: int) -> dict[str, Marks]:
    """Return what is to be said of drawers, as attributes and values; those with nothing are left out.

    ``pinned true``; ``fact fresh`` for a fact that was stated or changed within a week, ``stale`` for one
    that holds no longer or whose condition is met; ``procedure true`` for one that works more often than not.
    """
    found: dict[str, Marks] = {}
    for part in batches(ids):
        kept = select(drawers.c.id).join(pins, pins.c.drawer == drawers.c.rid).where(drawers.c.id.in_(part))
        for id_ in cx.execute(kept).scalars():
            found.setdefault(id_, []).append(("pinned", "true"))
        for id_, state in _facts(cx, part, now).items():
            found.setdefault(id_, []).append(("fact", state))
        works = select(mem_procedures.c.drawer).where(
            mem_procedures.c.drawer.in_(part),
            mem_procedures.c.invalidated_at.is_(None),
            mem_procedures.c.state != "cold",
            mem_procedures.c.weight >= LEAST_WEIGHT,
        )
        for id_ in set(cx.execute(works).scalars()):
            found.setdefault(id_, []).append(("procedure", "true"))
    return found


def _facts(cx: Connection, ids: Sequence[str], now: int) -> dict[str, str]:
    """Return fresh or stale for drawers that state a fact; one that holds speaks for its drawer."""
    same = and_(mem_conditions.c.owner_kind == "fact", mem_conditions.c.owner_id == mem_facts.c.id)
    query = (
        select(mem_facts.c.drawer, mem_facts.c.invalidated_at, mem_facts.c.updated_at)
        .add_columns(mem_conditions.c.last_result)
        .select_from(mem_facts.outerjoin(mem_conditions, same))
        .where(mem_facts.c.drawer.in_(ids))
    )
    stale: set[str] = set()
    holds: set[str] = set()
    fresh: set[str] = set()
    for drawer, ended, updated, result in cx.execute(query):
        if ended is not None or result == "met":
            stale.add(drawer)
        else:
            holds.add(drawer)
            if updated >= now - FRESH_DAYS * _DAY:
                fresh.add(drawer)
    return {**{id_: "stale" for id_ in stale - holds}, **{id_: "fresh" for id_ in fresh}}
