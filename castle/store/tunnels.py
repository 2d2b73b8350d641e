"""Tunnels: ways from wing to wing, by a room of the same name, a shared topic, or made by hand.

Graphs are built from the database for each call, so that they show what it holds now.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlalchemy import Connection as Cx
from sqlalchemy import Row, and_, func, insert, or_, select, update

from castle.errors import NotFoundError, UsageError
from castle.records import HIDDEN_KINDS
from castle.store.entity_tables import mentions, registry
from castle.store.graph_tables import entities
from castle.store.graph_values import without_secret
from castle.store.ledger import Ledger
from castle.store.places import present_name
from castle.store.reading import full_id
from castle.store.schema import drawers
from castle.store.sealing import shown
from castle.store.tunnel_tables import tunnels
from castle.store.tunnel_values import (
    Connection,
    GraphStats,
    Passages,
    SharedRoom,
    SharedTopic,
    Spot,
    Step,
    Traversal,
    Tunnel,
)

if TYPE_CHECKING:
    import networkx as nx

Rooms: TypeAlias = dict[str, list[Row[*tuple[Any, ...]]]]

GENERAL = "general"
MOST = 50
TOP = 10
PREVIEW = 300
MOST_HOPS = 10

_source = drawers.alias("source_drawers")
_target = drawers.alias("target_drawers")


class Tunnels:
    """The ways between the wings of a palace; ``actor`` is recorded with every change."""

    def __init__(self, ledger: Ledger, *, actor: str) -> None:
        self._ledger = ledger
        self._actor = actor

    def create(
        self,
        source: Spot,
        target: Spot,
        *,
        label: str = "",
        source_drawer: str | None = None,
        target_drawer: str | None = None,
    ) -> Tunnel:
        """Make a tunnel, or change the one there is between the two rooms, in whichever direction.

        Raises NotFoundError for a room or drawer that is not there, UsageError for one room twice.
        """
        with self._ledger.write() as cx:
            a, b = (Spot(present_name(cx, spot.wing), spot.room) for spot in (source, target))
            if a == b:
                raise UsageError(f"a tunnel leads from one room to another, not from {a} to itself")
            for spot in (a, b):
                _check_spot(cx, spot)
            values = {
                "source_wing": a.wing,
                "source_room": a.room,
                "source_drawer": _rid(cx, source_drawer, a),
                "target_wing": b.wing,
                "target_room": b.room,
                "target_drawer": _rid(cx, target_drawer, b),
                "label": without_secret("label", label),
            }
            known = cx.execute(_between(a, b)).first()
            if known is not None and known.ended_at is None and _holds(known, values):
                return _one(cx, known.id)
            now = self._ledger.clock()
            if known is not None:
                id_, created = known.id, known.created_at
                self._end(cx, id_, now)
            else:
                id_, created = _free_id(cx, a, b), now
            row = {"id": id_, "created_at": created, "recorded_at": now, "recorded_by": self._actor}
            cx.execute(insert(tunnels).values(**row, **values))
            return _one(cx, id_)

    def delete(self, id_: str) -> Tunnel:
        """End a tunnel and return it; making it again brings it back with its id and time of creation."""
        with self._ledger.write() as cx:
            tunnel = _one(cx, id_)
            self._end(cx, tunnel.id, self._ledger.clock())
            return tunnel

    def made(self, *, wing: str | None = None) -> list[Tunnel]:
        """Return the tunnels made by hand, oldest first."""
        with self._ledger.read() as cx:
            return _made(cx, wing and present_name(cx, wing))

    def find(
        self,
        *,
        wing_a: str | None = None,
        wing_b: str | None = None,
        topics_by_wing: Mapping[str, Iterable[str]] | None = None,
        limit: int = MOST,
    ) -> Passages:
        """Return what leads from wing to wing, of both wings if they are named; ``limit`` for each kind.

        ``topics_by_wing`` None takes the topics of the registry that drawers of a wing mention.
        """
        with self._ledger.read() as cx:
            wings = {present_name(cx, wing) for wing in (wing_a, wing_b) if wing is not None}
            made = [t for t in _made(cx) if wings <= {t.source.wing, t.target.wing}]
            rooms = [room for room in _shared_rooms(_rooms(cx)) if wings <= set(room.wings)]
            if topics_by_wing is None:
                topics_by_wing = topics_of(cx)
        topics = [t for t in shared_topics(topics_by_wing) if wings <= set(t.wings)]
        total = len(made) + len(rooms) + len(topics)
        return Passages(total, tuple(made[:limit]), tuple(rooms[:limit]), tuple(topics[:limit]))

    def follow(self, spot: Spot) -> list[Connection]:
        """Return where a room leads, tunnels made by hand first. Raises NotFoundError."""
        with self._ledger.read() as cx:
            here = Spot(present_name(cx, spot.wing), spot.room)
            _check_spot(cx, here)
            made = [_connection(cx, t, here) for t in _made(cx) if here in (t.source, t.target)]
            same = [] if here.room == GENERAL else _rooms(cx).get(here.room, [])
        reached = sorted({row.wing for row in same} - {here.wing})
        return made + [
            Connection("same room", "both", wing, here.room, "", None, None, "") for wing in reached
        ]

    def traverse(self, start: str, *, max_hops: int = 2, limit: int = MOST) -> Traversal:
        """Return the rooms within some hops: a hop leads through a wing both stand in, or through a tunnel.

        Nearer ones come first, then those with more drawers. Raises NotFoundError naming rooms like it.
        """
        import networkx as nx

        if not 1 <= max_hops <= MOST_HOPS:
            raise UsageError(f"{max_hops} hops: between 1 and {MOST_HOPS} are possible")
        with self._ledger.read() as cx:
            rooms = _rooms(cx)
            graph = _graph(rooms, _made(cx))
        node = ("room", start)
        if node not in graph:
            raise NotFoundError(f"no room {start} to start from{_like(start, rooms)}")
        # A room is two edges from the rooms of its wing; an edge of weight 2 leads through a tunnel.
        near = nx.single_source_dijkstra_path_length(graph, node, cutoff=2 * max_hops)
        hops = {name: round(length) // 2 for (kind, name), length in near.items() if kind == "room"}
        sizes = {room: sum(row.number for row in rooms.get(room, ())) for room in hops}
        order = sorted(hops, key=lambda room: (hops[room], -sizes[room], room))[1:]
        steps = [_step(graph, rooms, room, hops) for room in order[:limit]]
        return Traversal(start, max_hops, len(order), tuple(steps))

    def stats(self) -> GraphStats:
        """Return counts over all rooms but ``general``."""
        import networkx as nx

        with self._ledger.read() as cx:
            rooms = _rooms(cx)
            made = _made(cx)
        between: nx.MultiGraph = nx.MultiGraph()
        shared = _shared_rooms(rooms)
        for room in shared:
            for hall in room.halls:
                between.add_edges_from(combinations(room.wings, 2), key=(room.room, hall))
        graph = _graph(rooms, ())
        wings = sorted(name for kind, name in graph if kind == "wing")
        return GraphStats(
            total_rooms=len(rooms),
            tunnel_rooms=len(shared),
            total_edges=between.number_of_edges(),
            made=len(made),
            rooms_per_wing={wing: graph.degree(("wing", wing)) for wing in wings},
            top_tunnels=tuple(shared[:TOP]),
        )

    def _end(self, cx: Cx, id_: str, now: int) -> None:
        cx.execute(
            update(tunnels)
            .where(tunnels.c.id == id_, tunnels.c.ended_at.is_(None))
            .values(ended_at=now, ended_by=self._actor)
        )


def shared_topics(topics_by_wing: Mapping[str, Iterable[str]]) -> list[SharedTopic]:
    """Return the topics that several wings are about, in any case of letters; those of most wings first."""
    wings: dict[str, set[str]] = {}
    for wing, topics in topics_by_wing.items():
        for topic in topics:
            if topic.strip():
                wings.setdefault(" ".join(topic.casefold().split()), set()).add(wing)
    shared = [SharedTopic(topic, tuple(sorted(found))) for topic, found in wings.items() if len(found) > 1]
    return sorted(shared, key=lambda topic: (-len(topic.wings), topic.topic))


def topics_of(cx: Cx) -> dict[str, set[str]]:
    """Return the topics of the registry that current drawers mention, by wing."""
    query = (
        select(drawers.c.wing, entities.c.name)
        .select_from(
            entities.join(registry, registry.c.entity == entities.c.id)
            .join(mentions, mentions.c.entity == entities.c.id)
            .join(drawers, drawers.c.rid == mentions.c.drawer)
        )
        .where(registry.c.kind == "topic", registry.c.forgotten_at.is_(None), drawers.c.state == "current")
        .distinct()
    )
    topics: dict[str, set[str]] = {}
    for wing, name in cx.execute(query):
        topics.setdefault(wing, set()).add(name)
    return topics


def _rooms(cx: Cx) -> Rooms:
    """Return what stands in each room, one row for each wing and hall."""
    query = (
        select(
            drawers.c.wing,
            drawers.c.room,
            drawers.c.hall,
            func.count().label("number"),
            func.max(drawers.c.authored_at).label("last_at"),
        )
        .where(
            drawers.c.state == "current",
            drawers.c.seq.is_not(None),
            drawers.c.room != GENERAL,
            drawers.c.kind.not_in(HIDDEN_KINDS),
        )
        .group_by(drawers.c.wing, drawers.c.room, drawers.c.hall)
        .order_by(drawers.c.wing, drawers.c.room, drawers.c.hall)
    )
    rooms: Rooms = {}
    for row in cx.execute(query):
        rooms.setdefault(row.room, []).append(row)
    return rooms


def _shared_rooms(rooms: Rooms) -> list[SharedRoom]:
    shared = [room for room in (_shared(name, rows) for name, rows in rooms.items()) if len(room.wings) > 1]
    return sorted(shared, key=lambda room: (-room.drawers, room.room))


def _shared(name: str, rows: Sequence[Row[*tuple[Any, ...]]]) -> SharedRoom:
    return SharedRoom(
        name,
        tuple(sorted({row.wing for row in rows})),
        tuple(sorted({row.hall for row in rows})),
        sum(row.number for row in rows),
        max(row.last_at for row in rows),
    )


def _graph(rooms: Rooms, made: Iterable[Tunnel]) -> nx.Graph:
    """Build the graph of rooms and the wings they stand in, with the tunnels between rooms."""
    import networkx as nx

    graph: nx.Graph = nx.Graph()
    for name, rows in rooms.items():
        graph.add_node(("room", name))
        graph.add_edges_from(((("room", name), ("wing", row.wing)) for row in rows), weight=1)
    for tunnel in made:
        ends = ("room", tunnel.source.room), ("room", tunnel.target.room)
        if ends[0] != ends[1]:
            graph.add_edge(*ends, weight=2)
    return graph


def _step(
    graph: nx.Graph,
    rooms: Rooms,
    room: str,
    hops: Mapping[str, int],
) -> Step:
    """Describe a room that was reached; it may be known from tunnels only."""
    rows = rooms.get(room, [])
    hop = hops[room]
    via = set()
    for kind, name in graph[("room", room)]:
        inner = [other for label, other in graph[(kind, name)] if label == "room"]
        before = inner if kind == "wing" else [name]
        if any(hops.get(other) == hop - 1 for other in before):
            via.add(name if kind == "wing" else f"tunnel from {name}")
    return Step(
        room,
        hop,
        tuple(sorted({row.wing for row in rows})),
        tuple(sorted({row.hall for row in rows})),
        sum(row.number for row in rows),
        tuple(sorted(via)),
    )


def _connection(cx: Cx, tunnel: Tunnel, here: Spot) -> Connection:
    outgoing = tunnel.source == here
    there = tunnel.target if outgoing else tunnel.source
    drawer = tunnel.target_drawer if outgoing else tunnel.source_drawer
    direction: Literal["outgoing", "incoming"] = "outgoing" if outgoing else "incoming"
    preview = _preview(cx, drawer) if drawer is not None else ""
    return Connection("made", direction, there.wing, there.room, tunnel.label, tunnel.id, drawer, preview)


def _preview(cx: Cx, drawer: str) -> str:
    row = cx.execute(select(drawers).where(drawers.c.id == drawer)).one()
    return shown(cx, row)[:PREVIEW] if row.state == "current" else ""


def _made(cx: Cx, wing: str | None = None) -> list[Tunnel]:
    query = _with_drawers().where(tunnels.c.ended_at.is_(None))
    if wing is not None:
        query = query.where(or_(tunnels.c.source_wing == wing, tunnels.c.target_wing == wing))
    query = query.order_by(tunnels.c.created_at, tunnels.c.rid)
    return [_tunnel(row) for row in cx.execute(query)]


def _with_drawers() -> Any:
    return select(tunnels, _source.c.id.label("source_id"), _target.c.id.label("target_id")).select_from(
        tunnels.outerjoin(_source, _source.c.rid == tunnels.c.source_drawer).outerjoin(
            _target, _target.c.rid == tunnels.c.target_drawer
        )
    )


def _tunnel(row: Row[*tuple[Any, ...]]) -> Tunnel:
    return Tunnel(
        row.id,
        Spot(row.source_wing, row.source_room),
        Spot(row.target_wing, row.target_room),
        row.label,
        row.source_id,
        row.target_id,
        row.created_at,
        row.recorded_at if row.recorded_at != row.created_at else None,
        row.recorded_by,
    )


def _one(cx: Cx, given: str) -> Tunnel:
    text = given.strip().lower()
    if len(text) < 6:
        raise UsageError(f"{given!r} is no id of a tunnel: `castle tunnels list` shows them")
    matches = func.substr(tunnels.c.id, 1, len(text)) == text
    found = [_tunnel(row) for row in cx.execute(_with_drawers().where(tunnels.c.ended_at.is_(None), matches))]
    if not found:
        raise NotFoundError(f"no tunnel {given}: `castle tunnels list` shows them")
    if len(found) > 1:
        raise UsageError(f"several tunnels begin with {given}: give more of the id")
    return found[0]


def _between(a: Spot, b: Spot) -> Any:
    """Select the newest version of the tunnel between two rooms, one that stands before one that ended."""
    ways = [
        and_(
            tunnels.c.source_wing == x.wing,
            tunnels.c.source_room == x.room,
            tunnels.c.target_wing == y.wing,
            tunnels.c.target_room == y.room,
        )
        for x, y in ((a, b), (b, a))
    ]
    order = (tunnels.c.ended_at.is_(None).desc(), tunnels.c.rid.desc())
    return select(tunnels).where(or_(*ways)).order_by(*order).limit(1)


def _holds(row: Row[*tuple[Any, ...]], values: Mapping[str, object]) -> bool:
    return all(getattr(row, name) == value for name, value in values.items())


def _free_id(cx: Cx, a: Spot, b: Spot) -> str:
    """Return an id that follows from the two rooms, unless a tunnel that moved away has it."""
    number = 0
    while True:
        digest = hashlib.sha256()
        for part in (*(p for spot in sorted((a, b)) for p in (spot.wing, spot.room)), str(number)):
            data = part.encode("utf-8")
            digest.update(len(data).to_bytes(8, "big") + data)
        id_ = digest.hexdigest()[:24]
        if cx.execute(select(tunnels.c.rid).where(tunnels.c.id == id_).limit(1)).first() is None:
            return id_
        number += 1


def _check_spot(cx: Cx, spot: Spot) -> None:
    query = select(drawers.c.room).where(drawers.c.wing == spot.wing, drawers.c.seq.is_not(None)).distinct()
    rooms = [room for (room,) in cx.execute(query)]
    if spot.room not in rooms:
        what = f"no room {spot.room} in wing {spot.wing}" if rooms else f"no wing {spot.wing}"
        raise NotFoundError(f"{what}{_like(spot.room, rooms)}: `castle status` shows them")


def _like(name: str, rooms: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(rooms), n=3)
    return f" (perhaps {', '.join(close)})" if close else ""


def _rid(cx: Cx, given: str | None, spot: Spot) -> int | None:
    if given is None:
        return None
    id_ = full_id(cx, given)
    row = cx.execute(select(drawers).where(drawers.c.id == id_)).one()
    if (row.wing, row.room) != (spot.wing, spot.room):
        raise UsageError(f"drawer {given} stands in {row.wing}/{row.room}, not in {spot}")
    return int(row.rid)
