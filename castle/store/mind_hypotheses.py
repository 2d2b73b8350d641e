"""Hypotheses: what may be so. They are derived, believed only once a person confirms them.

Every change names the state it starts from, and tells whether it was made: two processes that say something
about the same hypothesis do not write over each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from castle.errors import NotFoundError
from castle.store.ledger import to_json
from castle.store.mind_index import index
from castle.store.mind_rows import cite, new_id, note_change
from castle.store.mind_tables import mem_hypotheses
from castle.store.mind_values import Source

STATUSES = ("pending", "confirmed", "promoted", "rejected", "expired")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis: ``seeds`` and ``nodes`` are ids it came from, ``pair`` the two texts it joins.

    ``cycles`` are the replays that came to it, ``fact`` is what it was promoted to.
    """

    id: str
    text: str
    rationale: str
    confidence: float
    status: str
    wing: str | None
    push_count: int
    ignore_count: int
    cycles: tuple[int, ...]
    seeds: tuple[str, ...]
    nodes: tuple[str, ...]
    pair: tuple[str, ...]
    topics: tuple[str, ...]
    fact: str | None
    metadata: Mapping[str, Any]
    last_pushed_at: int | None
    expires_at: int | None
    created_at: int
    updated_at: int

    @property
    def stability(self) -> int:
        """How many distinct cycles came to it."""
        return len(self.cycles)


def add_hypothesis(
    cx: Connection,
    text: str,
    *,
    rationale: str,
    confidence: float,
    wing: str | None,
    cycle: int,
    seeds: Sequence[str],
    nodes: Sequence[str],
    pair: Sequence[str],
    topics: Sequence[str],
    sources: Iterable[Source],
    metadata: Mapping[str, Any],
    expires_at: int,
    actor: str,
    now: int,
) -> Hypothesis:
    """Keep a hypothesis that nobody has judged yet."""
    id_ = new_id("hypothesis")
    cx.execute(
        insert(mem_hypotheses).values(
            id=id_,
            text=text,
            rationale=rationale,
            confidence=confidence,
            status="pending",
            origin="replay",
            wing=wing,
            push_count=0,
            ignore_count=0,
            stability_count=1,
            cycles_json=to_json([cycle]),
            seeds_json=to_json(list(seeds)),
            nodes_json=to_json(list(nodes)),
            pair_json=to_json(list(pair)),
            topics_json=to_json(list(topics)),
            metadata_json=to_json(dict(metadata)),
            expires_at=expires_at,
            created_at=now,
            updated_at=now,
        )
    )
    cite(cx, "hypothesis", id_, sources, now)
    index(cx, "hypothesis", id_, text)
    note_change(cx, "hypothesis", id_, "status", "", "pending", reason="replay", actor=actor, now=now)
    return get_hypothesis(cx, id_)


def get_hypothesis(cx: Connection, id_: str) -> Hypothesis:
    """Return a hypothesis; raises NotFoundError."""
    row = cx.execute(select(mem_hypotheses).where(mem_hypotheses.c.id == id_)).first()
    if row is None:
        raise NotFoundError(f"the mind holds no hypothesis {id_}: `castle memory pool` lists them")
    return _hypothesis(row)


def hypotheses(
    cx: Connection,
    *,
    statuses: Sequence[str] = STATUSES,
    limit: int = 2_000,
    ids: Sequence[str] | None = None,
) -> list[Hypothesis]:
    """Return hypotheses in some states, the newest first."""
    query = select(mem_hypotheses).where(mem_hypotheses.c.status.in_(statuses))
    if ids is not None:
        query = query.where(mem_hypotheses.c.id.in_(ids))
    query = query.order_by(mem_hypotheses.c.created_at.desc(), mem_hypotheses.c.id).limit(limit)
    return [_hypothesis(row) for row in cx.execute(query)]


def count_by_status(cx: Connection) -> dict[str, int]:
    """Return how many hypotheses there are in each state, 0 for a state that none is in."""
    rows = cx.execute(select(mem_hypotheses.c.status, func.count()).group_by(mem_hypotheses.c.status))
    return {**dict.fromkeys(STATUSES, 0), **{str(status): int(count) for status, count in rows}}


def change(cx: Connection, held: Hypothesis, *, reason: str, actor: str, now: int, **values: Any) -> bool:
    """Change a hypothesis as it was read; false, and nothing is changed, where somebody was faster.

    Every property that changes leaves a row of history.
    """
    same = (
        (mem_hypotheses.c.id == held.id)
        & (mem_hypotheses.c.status == held.status)
        & (mem_hypotheses.c.confidence == held.confidence)
        & (mem_hypotheses.c.ignore_count == held.ignore_count)
    )
    if not cx.execute(update(mem_hypotheses).where(same).values(**values, updated_at=now)).rowcount:
        return False
    for name in ("status", "confidence", "ignore_count"):
        if name in values and values[name] != getattr(held, name):
            old, new = getattr(held, name), values[name]
            note_change(cx, "hypothesis", held.id, name, old, new, reason=reason, actor=actor, now=now)
    return True


def seen_again(cx: Connection, held: Hypothesis, cycle: int, confidence: float, expires_at: int) -> None:
    """Note that one more cycle came to a hypothesis."""
    cycles = [*held.cycles, *([cycle] if cycle not in held.cycles else [])]
    values = {"cycles_json": to_json(cycles), "stability_count": len(cycles), "expires_at": expires_at}
    mine = mem_hypotheses.c.id == held.id
    cx.execute(update(mem_hypotheses).where(mine).values(**values, confidence=confidence))


def note_pushed(cx: Connection, id_: str, now: int) -> None:
    """Note that a hypothesis was put into working memory."""
    mine = mem_hypotheses.c.id == id_
    values = {"push_count": mem_hypotheses.c.push_count + 1, "last_pushed_at": now}
    cx.execute(update(mem_hypotheses).where(mine).values(**values))


def _hypothesis(row: Any) -> Hypothesis:
    return Hypothesis(
        row.id,
        row.text,
        row.rationale,
        row.confidence,
        row.status,
        row.wing,
        row.push_count,
        row.ignore_count,
        tuple(json.loads(row.cycles_json)),
        tuple(json.loads(row.seeds_json)),
        tuple(json.loads(row.nodes_json)),
        tuple(json.loads(row.pair_json)),
        tuple(json.loads(row.topics_json)),
        row.fact,
        json.loads(row.metadata_json),
        row.last_pushed_at,
        row.expires_at,
        row.created_at,
        row.updated_at,
    )
