"""Pins and uses of drawers, and the drawers that rank high by time, use or novelty, by indexes alone.

A pin is a person's or an agent's word that a drawer matters; a use is one look at a drawer. Neither changes
the drawer. What reads them does without where the palace is read-only and older than they are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select, text
from sqlalchemy.dialects.sqlite import insert

from castle.errors import CastleError, PalaceBusyError, RefusedError
from castle.store.ledger import Ledger, batches
from castle.store.novelty import in_force
from castle.store.reading import full_id
from castle.store.schema import drawers
from castle.store.use_tables import ORDINARY, RECENT, pins, uses

FLUSH_SECONDS = 5.0
MOST_LOOKED_THROUGH = 500
"""Rows of a ranking that are looked through for those of one wing."""

_NAMED = select(drawers.c.rid, drawers.c.id)


@dataclass(frozen=True, slots=True)
class Pin:
    """That a drawer was pinned, when and by whom."""

    id: str
    pinned_at: int
    pinned_by: str


@dataclass(frozen=True, slots=True)
class Room:
    """A room that holds ordinary drawers, and when the newest of them was written."""

    wing: str
    room: str
    newest: int


# Pins


def pin(ledger: Ledger, id_: str, actor: str) -> tuple[str, bool]:
    """Pin a current drawer; return its full id and whether it was not pinned before.

    Raises NotFoundError, or RefusedError for a drawer that is superseded or forgotten.
    """
    with ledger.write() as cx:
        id_ = full_id(cx, id_)
        row = cx.execute(select(drawers.c.rid, drawers.c.state).where(drawers.c.id == id_)).one()
        if row.state != "current":
            way = (
                f"`castle restore {id_}` brings it back"
                if row.state == "forgotten"
                else "pin what replaced it"
            )
            raise RefusedError(f"drawer {id_} is {row.state} and would not be shown: {way}")
        values = {"drawer": row.rid, "pinned_at": ledger.clock(), "pinned_by": actor}
        done = cx.execute(insert(pins).values(**values).on_conflict_do_nothing())
        return id_, done.rowcount > 0


def unpin(ledger: Ledger, id_: str) -> tuple[str, bool]:
    """Take a pin away; return the drawer's full id and whether there was a pin. Raises NotFoundError."""
    with ledger.write() as cx:
        id_ = full_id(cx, id_)
        rid = select(drawers.c.rid).where(drawers.c.id == id_).scalar_subquery()
        return id_, cx.execute(delete(pins).where(pins.c.drawer == rid)).rowcount > 0


def pinned(cx: Connection, wing: str | None = None) -> list[Pin]:
    """Return the pins, the latest first, those of superseded and forgotten drawers included."""
    if not _ready(cx):
        return []
    query = select(drawers.c.id, pins).join(drawers, drawers.c.rid == pins.c.drawer)
    if wing is not None:
        query = query.where(drawers.c.wing == wing)
    rows = cx.execute(query.order_by(pins.c.pinned_at.desc(), pins.c.drawer.desc()))
    return [Pin(row.id, row.pinned_at, row.pinned_by) for row in rows]


# Uses


def count_uses(ledger: Ledger, counts: Mapping[str, int], patience: float) -> None:
    """Add to the numbers of uses, by id; waits ``patience`` seconds for other writers.

    Raises PalaceBusyError, and PalaceError when the palace cannot be written.
    """
    with ledger.write(patience) as cx:
        now = ledger.clock()
        rids = _rids(cx, list(counts))
        rows = [{"drawer": rid, "count": counts[id_], "used_at": now} for id_, rid in rids.items()]
        if rows:
            new = insert(uses)
            more = {"count": uses.c.count + new.excluded.count, "used_at": new.excluded.used_at}
            cx.execute(new.on_conflict_do_update(index_elements=["drawer"], set_=more), rows)


def uses_of(cx: Connection, rids: Sequence[int]) -> dict[int, int]:
    """Return how often drawers were used, by rid; those that never were are left out."""
    found: dict[int, int] = {}
    if _ready(cx):
        for part in batches(rids):
            query = select(uses.c.drawer, uses.c.count).where(uses.c.drawer.in_(part))
            found.update((rid, count) for rid, count in cx.execute(query))
    return found


class Uses:
    """Uses that were counted and are written together now and then: nobody who looks at a drawer waits.

    ``add`` writes every ``seconds``, ``flush`` at once. What cannot be written is kept for the next time when
    the palace was busy, and is lost when it is read-only or the process is killed.
    """

    def __init__(self, seconds: float = FLUSH_SECONDS) -> None:
        self._seconds = seconds
        self._counts: Counter[str] = Counter()
        self._due = time.monotonic() + seconds

    def add(self, ledger: Ledger, id_: str) -> None:
        """Count a use of a drawer."""
        self._counts[id_] += 1
        if time.monotonic() >= self._due:
            self.flush(ledger)

    def flush(self, ledger: Ledger) -> None:
        """Write what was counted; never raises an error of Castle's."""
        self._due = time.monotonic() + self._seconds
        counts, self._counts = self._counts, Counter()
        if not counts or ledger.read_only:
            return
        try:
            count_uses(ledger, counts, 0.0)
        except PalaceBusyError:
            self._counts += counts
        except CastleError:
            pass


def _rids(cx: Connection, ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in batches(ids):
        found |= {row.id: row.rid for row in cx.execute(_NAMED.where(drawers.c.id.in_(part)))}
    return found


# What ranks high. Each query is bounded by its limit and by the number of rooms, whatever the palace holds.


def recent_rooms(cx: Connection, wing: str | None, limit: int) -> list[Room]:
    """Return the rooms that hold ordinary drawers, the one with the newest drawer first.

    Wings and rooms are found by jumping through the index from each to the next.
    """
    given = ":wing" if wing is not None else f"(SELECT min(wing) FROM {_indexed(cx)})"
    onward = "NULL" if wing is not None else f"(SELECT min(wing) FROM {_indexed(cx)} AND wing > w.wing)"
    inside = f"FROM {_indexed(cx)} AND drawers.wing = r.wing AND drawers.room"
    query = f"""
        WITH RECURSIVE w(wing) AS (
            SELECT {given} UNION ALL SELECT {onward} FROM w WHERE w.wing IS NOT NULL
        ), r(wing, room) AS (
            SELECT w.wing, (SELECT min(room) FROM {_indexed(cx)} AND drawers.wing = w.wing)
            FROM w WHERE w.wing IS NOT NULL
            UNION ALL
            SELECT r.wing, (SELECT min(drawers.room) {inside} > r.room) FROM r WHERE r.room IS NOT NULL
        )
        SELECT r.wing, r.room, (SELECT max(authored_at) {inside} = r.room) AS newest
        FROM r WHERE r.room IS NOT NULL ORDER BY newest DESC, r.wing, r.room LIMIT :limit
    """
    values: dict[str, Any] = {"limit": limit} | ({"wing": wing} if wing is not None else {})
    return [Room(row.wing, row.room, row.newest) for row in cx.execute(text(query), values)]


def newest_of_room(cx: Connection, wing: str, room: str, limit: int) -> list[int]:
    """Return the rids of a room's newest ordinary drawers, the newest first."""
    query = (
        f"SELECT rid FROM {_indexed(cx)} AND wing = :wing AND room = :room "
        "ORDER BY authored_at DESC, rid DESC LIMIT :limit"
    )
    return _column(cx, query, wing=wing, room=room, limit=limit)


def newest(
    cx: Connection, wing: str | None, room: str | None, limit: int, offset: int
) -> tuple[int, list[str]]:
    """Return how many ordinary drawers a place holds, and the ids of a page of them, the newest first.

    Reads the part of the index that the place takes.
    """
    where = "".join(f" AND {name} = :{name}" for name, value in (("wing", wing), ("room", room)) if value)
    given = {name: value for name, value in (("wing", wing), ("room", room)) if value}
    (total,) = _column(cx, f"SELECT count(*) FROM {_indexed(cx)}{where}", **given)
    query = (
        f"SELECT rid FROM {_indexed(cx)}{where} ORDER BY authored_at DESC, rid DESC LIMIT :limit OFFSET :skip"
    )
    rids = _column(cx, query, limit=limit, skip=offset, **given)
    ids: dict[int, str] = {}
    for part in batches(rids):
        ids |= {row.rid: row.id for row in cx.execute(_NAMED.where(drawers.c.rid.in_(part)))}
    return total, [ids[rid] for rid in rids]


def most_used(cx: Connection, wing: str | None, limit: int) -> list[int]:
    """Return the rids of the ordinary drawers that were used most often."""
    if not _ready(cx):
        return []
    return _best(cx, "SELECT drawer, count AS rank FROM uses ORDER BY count DESC, used_at DESC", wing, limit)


def most_novel(cx: Connection, wing: str | None, limit: int) -> list[int]:
    """Return the rids of the ordinary drawers that said most that was new when they were filed."""
    if not _ready(cx) or not in_force(cx):
        return []
    ranked = "SELECT drawer, score AS rank FROM novelty WHERE score IS NOT NULL ORDER BY score DESC"
    return _best(cx, ranked, wing, limit)


def pinned_rids(cx: Connection, wing: str | None) -> dict[int, int]:
    """Return the ordinary drawers that are pinned, by rid, and when they were."""
    if not _ready(cx):
        return {}
    where = " AND wing = :wing" if wing is not None else ""
    query = f"SELECT rid, pinned_at FROM pins CROSS JOIN drawers ON rid = drawer WHERE {ORDINARY}{where}"
    values = {"wing": wing} if wing is not None else {}
    return {row.rid: row.pinned_at for row in cx.execute(text(query), values)}


def _best(cx: Connection, ranked: str, wing: str | None, limit: int) -> list[int]:
    """Return the ordinary drawers among the first rows of a ranking of (drawer, rank)."""
    where = " AND wing = :wing" if wing is not None else ""
    values: dict[str, Any] = {"wing": wing} if wing is not None else {}
    query = (
        f"SELECT rid FROM ({ranked} LIMIT {MOST_LOOKED_THROUGH}) CROSS JOIN drawers ON rid = drawer "
        f"WHERE {ORDINARY}{where} ORDER BY rank DESC, rid DESC LIMIT :limit"
    )
    return _column(cx, query, limit=limit, **values)


def _column(cx: Connection, query: str, **values: Any) -> list[int]:
    return [value for (value,) in cx.execute(text(query), values)]


def _indexed(cx: Connection) -> str:
    """Return the ordinary drawers as a query names them, by the index where the palace has it."""
    way = f" INDEXED BY {RECENT}" if _has(cx, RECENT) else ""
    return f"drawers{way} WHERE {ORDINARY}"


def _ready(cx: Connection) -> bool:
    return _has(cx, "uses")


def _has(cx: Connection, name: str) -> bool:
    """Whether the palace has a table or an index: a read-only one may be older than these are."""
    known = cx.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).first()
    return known is not None
