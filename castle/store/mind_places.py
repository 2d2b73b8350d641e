"""What places join: tunnels made by hand, rooms of one name in several wings, and halls.

The ends are drawers, rooms (``wing/room``) and halls (``wing/hall``). Where a tunnel names a drawer at its
other end it leads to that drawer, too. A hall is joined to rooms, not to all that stands in them:
associations from nearly everything to nearly everything tell nothing, and neither does what is ``general``.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, or_, select

from castle.records import HIDDEN_KINDS
from castle.store.mind_values import Edge
from castle.store.schema import drawers
from castle.store.tunnel_tables import tunnels

PLACE_WEIGHT = 0.4
"""How strongly a tunnel or a hall joins."""
MOST_PLACES = 50
GENERAL = "general"

_ORDINARY = (
    drawers.c.state == "current",
    drawers.c.seq.is_not(None),
    drawers.c.kind.not_in(HIDDEN_KINDS),
)


def by_places(cx: Connection, kind: str, id_: str) -> list[Edge]:
    """Return what tunnels and halls join a drawer, a room or a hall to."""
    keys: dict[tuple[str, str], str] = {}
    if kind == "drawer":
        row = cx.execute(
            select(drawers.c.wing, drawers.c.room, drawers.c.hall).where(drawers.c.id == id_)
        ).first()
        if row is not None:
            keys = dict.fromkeys(_tunnelled(cx, row.wing, row.room), "tunnel")
            if row.hall not in ("", GENERAL):
                keys["hall", f"{row.wing}/{row.hall}"] = "hall"
    elif kind in ("room", "hall") and "/" in id_:
        wing, _, name = id_.partition("/")
        if kind == "room":
            keys = dict.fromkeys([*_tunnelled(cx, wing, name), *_namesakes(cx, wing, name)], "tunnel")
        column, other = (drawers.c.room, "hall") if kind == "room" else (drawers.c.hall, "room")
        there = select(drawers.c[other]).where(*_ORDINARY, drawers.c.wing == wing, column == name).distinct()
        names = cx.execute(there.order_by(drawers.c[other]).limit(MOST_PLACES)).scalars()
        keys |= {(other, f"{wing}/{one}"): "hall" for one in names if one not in ("", GENERAL)}
    keys.pop((kind, id_), None)
    return [Edge(*key, "associated_with", PLACE_WEIGHT, origin, True) for key, origin in keys.items()]


def _tunnelled(cx: Connection, wing: str, room: str) -> Iterator[tuple[str, str]]:
    """Give the rooms that tunnels made by hand lead to, and the drawers that they name there."""
    ends = ("source", "target")
    here = [(tunnels.c[f"{end}_wing"] == wing) & (tunnels.c[f"{end}_room"] == room) for end in ends]
    stands = select(tunnels).where(tunnels.c.ended_at.is_(None), or_(*here)).order_by(tunnels.c.rid)
    for row in cx.execute(stands.limit(MOST_PLACES)).mappings():
        at_source = (row["source_wing"], row["source_room"]) == (wing, room)
        there = ends[at_source]
        yield "room", f"{row[f'{there}_wing']}/{row[f'{there}_room']}"
        named = select(drawers.c.id).where(drawers.c.rid == row[f"{there}_drawer"], *_ORDINARY)
        for drawer in cx.execute(named).scalars():
            yield "drawer", drawer


def _namesakes(cx: Connection, wing: str, room: str) -> Iterator[tuple[str, str]]:
    if room == GENERAL:
        return
    query = select(drawers.c.wing).where(*_ORDINARY, drawers.c.room == room, drawers.c.wing != wing)
    for other in cx.execute(query.distinct().order_by(drawers.c.wing).limit(MOST_PLACES)).scalars():
        yield "room", f"{other}/{room}"
