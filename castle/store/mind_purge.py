"""What a purge takes out of the mind: everything that was stated in a purged drawer, or made from it.

What was derived may repeat the words of what it rests on, so it goes with any of its sources. A tombstone
says what went; a fact that somebody stated elsewhere loses the source and stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, insert, or_, select

from castle.store.ledger import batches
from castle.store.mind_index import unindex
from castle.store.mind_preferences import purge_preferences
from castle.store.mind_rows import TABLES
from castle.store.mind_tables import (
    mem_aliases,
    mem_conditions,
    mem_edges,
    mem_episodes,
    mem_fact_triples,
    mem_history,
    mem_ingest_queue,
    mem_preference_evidence,
    mem_procedure_outcomes,
    mem_recalls,
    mem_sources,
    mem_tombstones,
)
from castle.store.mind_values import DERIVED
from castle.store.schema import drawers

REASON = "purged with its drawer"
_STATED = ("fact", "procedure")
_DERIVED_KINDS = ("hypothesis", "reflection")


def purge_mind(cx: Connection, rids: Sequence[int], now: int) -> int:
    """Take out what belongs to drawers that are purged; return how many things went."""
    gone: set[tuple[str, str]] = set()
    for part in batches(rids):
        ids = list(cx.execute(select(drawers.c.id).where(drawers.c.rid.in_(part))).scalars())
        gone |= _of_drawers(cx, ids)
        cx.execute(delete(mem_episodes).where(mem_episodes.c.drawer.in_(part)))
        cx.execute(delete(mem_ingest_queue).where(mem_ingest_queue.c.drawer.in_(ids)))
        gone |= set(purge_preferences(cx, ids))
        _unname(cx, [("drawer", id_) for id_ in ids])
    gone |= _resting_on(cx, gone)
    for kind, id_ in sorted(gone):
        _remove(cx, kind, id_, now)
    _unname(cx, gone)
    cx.execute(delete(mem_recalls))  # what was asked for may repeat what goes
    return len(gone)


def _of_drawers(cx: Connection, ids: Sequence[str]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for kind in _STATED:
        table = TABLES[kind]
        stated = select(table.c.id).where(table.c.drawer.in_(ids))
        found |= {(kind, id_) for id_ in cx.execute(stated).scalars()}
    query = select(mem_sources.c.owner_kind, mem_sources.c.owner_id).where(
        mem_sources.c.source_kind == "drawer", mem_sources.c.source_id.in_(ids)
    )
    found |= {key for key in map(tuple, cx.execute(query)) if _is_derived(cx, *key)}
    return found


def _resting_on(cx: Connection, gone: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return what was derived from things that go, however far away."""
    found: set[tuple[str, str]] = set()
    front = set(gone)
    while front:
        following: set[tuple[str, str]] = set()
        for kind, id_ in front:
            query = select(mem_sources.c.owner_kind, mem_sources.c.owner_id).where(
                mem_sources.c.source_kind == kind, mem_sources.c.source_id == id_
            )
            following |= {key for key in map(tuple, cx.execute(query)) if _is_derived(cx, *key)}
        front = following - found - set(gone)
        found |= front
    return found


def _is_derived(cx: Connection, kind: str, id_: str) -> bool:
    if kind in _DERIVED_KINDS:
        return True
    if kind not in TABLES:
        return False
    origin = cx.execute(select(TABLES[kind].c.origin).where(TABLES[kind].c.id == id_)).scalar()
    return origin in DERIVED


def _remove(cx: Connection, kind: str, id_: str, now: int) -> None:
    table = TABLES[kind]
    row = cx.execute(select(table).where(table.c.id == id_)).first()
    if row is None:
        return
    digest = hashlib.sha256(repr(tuple(row)).encode("utf-8", "surrogatepass")).hexdigest()
    stone = {"kind": kind, "id": id_, "sha256": digest, "reason": REASON, "actor": "purge", "at": now}
    cx.execute(insert(mem_tombstones).prefix_with("OR REPLACE").values(**stone))
    cx.execute(delete(table).where(table.c.id == id_))
    unindex(cx, kind, id_)
    cx.execute(
        delete(mem_conditions).where(mem_conditions.c.owner_kind == kind, mem_conditions.c.owner_id == id_)
    )
    if kind == "fact":
        cx.execute(delete(mem_fact_triples).where(mem_fact_triples.c.fact == id_))
    if kind == "procedure":
        cx.execute(delete(mem_procedure_outcomes).where(mem_procedure_outcomes.c.procedure == id_))
    if kind == "preference":
        cx.execute(delete(mem_preference_evidence).where(mem_preference_evidence.c.preference == id_))


def _unname(cx: Connection, keys: Iterable[tuple[str, str]]) -> None:
    """Take out whatever names things: sources, associations, history, ids of before."""
    for kind, id_ in keys:
        owned = and_(mem_sources.c.owner_kind == kind, mem_sources.c.owner_id == id_)
        cited = and_(mem_sources.c.source_kind == kind, mem_sources.c.source_id == id_)
        cx.execute(delete(mem_sources).where(or_(owned, cited)))
        source = and_(mem_edges.c.source_kind == kind, mem_edges.c.source_id == id_)
        target = and_(mem_edges.c.target_kind == kind, mem_edges.c.target_id == id_)
        cx.execute(delete(mem_edges).where(or_(source, target)))
        for table in (mem_history, mem_aliases):
            named: Any = and_(table.c.kind == kind, table.c.id == id_)
            cx.execute(delete(table).where(named))
