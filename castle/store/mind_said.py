"""What people said themselves: their messages, word for word as they may be shown.

What an agent, a tool or the mind wrote is not among it, nor what a harness put into a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, and_, cast, func, literal, or_, select

from castle.store.mind_tables import mem_episodes
from castle.store.reading import drawers_by_id, served
from castle.store.schema import drawers
from castle.store.session_tables import sessions

_PEOPLE = ("", "user")
"""Origins of an episode that a person's own words have."""

_FROM = drawers.outerjoin(mem_episodes, mem_episodes.c.drawer == drawers.c.rid).outerjoin(
    sessions, sessions.c.source == drawers.c.source
)


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a person; ``session`` tells occasions apart, ``valence`` is None where nobody said."""

    rid: int
    id: str
    wing: str
    session: str
    text: str
    valence: float | None
    at: int


def said_after(cx: Connection, rid: int, limit: int, session: str | None = None) -> list[Said]:
    """Return people's messages in the order of filing, after a row; ``session`` limits them to one."""
    query = _query(and_(drawers.c.rid > rid, _by_people()), session).order_by(drawers.c.rid).limit(limit)
    return _read(cx, query)


def row_before_last(cx: Connection, count: int, session: str | None = None) -> int:
    """Return the row after which the last ``count`` messages of people stand, 0 where there are fewer."""
    query = _query(_by_people(), session).order_by(drawers.c.rid.desc()).offset(count).limit(1)
    row = cx.execute(query).first()
    return 0 if row is None else int(row.rid)


def occasion(cx: Connection, id_: str) -> tuple[str, str]:
    """Return the wing of a drawer and the occasion on which it was said; ("", "") for an unknown one."""
    row = cx.execute(_query(drawers.c.id == id_, None)).first()
    return ("", "") if row is None else (row.wing, row.occasion)


def _by_people() -> ColumnElement[bool]:
    return and_(
        drawers.c.seq.is_not(None),
        drawers.c.state == "current",
        drawers.c.kind == "message",
        drawers.c.role == "user",
        or_(mem_episodes.c.origin.is_(None), mem_episodes.c.origin.in_(_PEOPLE)),
    )


def _query(condition: ColumnElement[bool], session: str | None) -> Select[Any]:
    named = func.coalesce(
        func.nullif(sessions.c.session, ""),
        func.nullif(mem_episodes.c.session, ""),
        literal("source:") + cast(drawers.c.source, Text),
    )
    query = (
        select(drawers.c.rid, drawers.c.id, drawers.c.wing, drawers.c.authored_at, named.label("occasion"))
        .add_columns(mem_episodes.c.valence, mem_episodes.c.valence_source)
        .select_from(_FROM)
        .where(condition)
    )
    return query if session is None else query.where(named == session)


def _read(cx: Connection, query: Select[Any]) -> list[Said]:
    rows = list(cx.execute(query))
    found = drawers_by_id(cx, [row.id for row in rows])
    return [
        Said(
            row.rid,
            row.id,
            row.wing,
            row.occasion,
            served(found[row.id]),
            row.valence if row.valence_source else None,
            row.authored_at,
        )
        for row in rows
        if row.id in found
    ]
