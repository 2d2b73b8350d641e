"""The tools of the ways from wing to wing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import Answer, Item, Next, Quoted, Text
from castle.mcp.budget import BUDGET, fitted, result, size
from castle.mcp.quoting import quoted
from castle.mcp.tools.base import Limit, Offset, Palace, Wing, listed, offered, page, time_of

if TYPE_CHECKING:
    from castle.store.tunnel_values import Connection, Passages, SharedRoom, Step, Tunnel

NAMES = 5
"""How many wings of a room are named; ``in_wings`` counts them all where there are more."""

EVERYTHING = 1 << 30

Label = Annotated[str, Field(description="what the two have to do with each other", max_length=300)]


class TunnelItem(Item):
    """A tunnel that was made by hand."""

    tunnel_id: str
    source_wing: str
    source_room: str
    target_wing: str
    target_room: str
    label: str = ""
    source_drawer_id: str = ""
    target_drawer_id: str = ""
    created_at: str
    updated_at: str = ""


class TunnelsAnswer(Answer):
    """One page of tunnels, the oldest first."""

    total: int
    offset: int
    next_offset: Next = None
    tunnels: list[TunnelItem]


class CreatedAnswer(Answer):
    """A tunnel as it is recorded now."""

    success: bool
    tunnel: TunnelItem


class DeletedAnswer(Answer):
    """The id of a tunnel that is gone."""

    success: bool
    deleted: str


class PassageItem(Item):
    """What leads from wing to wing: a tunnel that was made, a room of several wings, or a shared topic."""

    kind: str
    tunnel_id: str = ""
    source_wing: str = ""
    source_room: str = ""
    target_wing: str = ""
    target_room: str = ""
    label: str = ""
    room: str = ""
    topic: str = ""
    wings: list[str] = []
    in_wings: int = 0
    drawers: int = 0
    last_at: str = ""


class PassagesAnswer(Answer):
    """One page of what leads from wing to wing: tunnels first, then rooms, then topics."""

    total: int
    offset: int
    next_offset: Next = None
    tunnels: list[PassageItem]


class ConnectionItem(Quoted):
    """Where a room leads; ``content`` is the beginning of the drawer there."""

    drawer_id: str = ""
    content: Text = ""
    kind: str
    direction: str
    wing: str
    room: str
    label: str = ""
    tunnel_id: str = ""


class ConnectionsAnswer(Answer):
    """One page of where a room leads, tunnels that were made first."""

    total: int
    offset: int
    next_offset: Next = None
    connections: list[ConnectionItem]


class StepItem(Item):
    """A room that can be reached; ``via`` are the wings or tunnels that lead there."""

    room: str
    hop: int
    wings: list[str]
    in_wings: int = 0
    drawers: int
    via: list[str]


class TraversalAnswer(Answer):
    """The rooms within some hops, nearer ones first; ``left_out`` of ``total`` had no room here."""

    start_room: str
    max_hops: int
    total: int
    left_out: int = 0
    rooms: list[StepItem]


class SharedItem(Item):
    """A room that stands in several wings."""

    room: str
    wings: list[str]
    in_wings: int = 0
    drawers: int
    last_at: str


class WingItem(Item):
    """How many rooms a wing has."""

    wing: str
    rooms: int


class GraphStatsAnswer(Answer):
    """Counts over all rooms but general; ``total`` counts wings."""

    total_rooms: int
    tunnel_rooms: int
    total_edges: int
    made: int
    top_tunnels: list[SharedItem]
    total: int
    offset: int
    next_offset: Next = None
    rooms_per_wing: dict[str, int]


class Ways(Palace):
    """The ways between rooms."""

    @offered("all")
    def traverse(
        self,
        start_room: str,
        max_hops: Annotated[int, Field(ge=1, le=10)] = 2,
    ) -> Annotated[CallToolResult, TraversalAnswer]:
        """Show the rooms that can be reached from one through shared wings and tunnels, at most 50."""
        with self._asked() as castle:
            found = castle.tunnels.traverse(start_room, max_hops=max_hops)

        def answer(rooms: list[StepItem]) -> TraversalAnswer:
            return TraversalAnswer(
                start_room=found.start,
                max_hops=found.max_hops,
                total=found.total,
                left_out=found.total - len(rooms),
                rooms=rooms,
            )

        return fitted([_step(step) for step in found.steps], answer)

    @offered("all")
    def find_tunnels(
        self,
        wing_a: Annotated[str, Field(description="only from or to this wing")] = "",
        wing_b: Annotated[str, Field(description="only from or to this wing")] = "",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, PassagesAnswer]:
        """Show what leads from wing to wing: tunnels made by hand, rooms of the same name, shared topics."""
        with self._asked() as castle:
            found = castle.tunnels.find(wing_a=wing_a or None, wing_b=wing_b or None, limit=EVERYTHING)
        items = _passages(found)[offset : offset + limit]
        return page(items, found.total, offset, partial(listed, PassagesAnswer, "tunnels"))

    @offered("all")
    def graph_stats(self, offset: Offset = 0) -> Annotated[CallToolResult, GraphStatsAnswer]:
        """Count the rooms of the wings and what connects them."""
        with self._asked() as castle:
            stats = castle.tunnels.stats()
        wings = [WingItem(wing=wing, rooms=rooms) for wing, rooms in stats.rooms_per_wing.items()]
        top = [_shared(room) for room in stats.top_tunnels]

        def answer(total: int, start: int, following: int | None, items: list[WingItem]) -> GraphStatsAnswer:
            return GraphStatsAnswer(
                total_rooms=stats.total_rooms,
                tunnel_rooms=stats.tunnel_rooms,
                total_edges=stats.total_edges,
                made=stats.made,
                top_tunnels=top,
                total=total,
                offset=start,
                next_offset=following,
                rooms_per_wing={item.wing: item.rooms for item in items},
            )

        while len(top) > 1 and size(result(answer(len(wings), offset, None, []))) > BUDGET // 2:
            top.pop()
        return page(wings[offset:], len(wings), offset, answer)

    @offered("all", "changes")
    def create_tunnel(
        self,
        source_wing: str,
        source_room: str,
        target_wing: str,
        target_room: str,
        label: Label = "",
        source_drawer_id: Annotated[str, Field(description="a drawer it begins at")] = "",
        target_drawer_id: Annotated[str, Field(description="a drawer it leads to")] = "",
    ) -> Annotated[CallToolResult, CreatedAnswer]:
        """Make a tunnel between two rooms; one that is there gets this label and these drawers instead."""
        from castle.store.tunnel_values import Spot

        with self._asked() as castle:
            tunnel = castle.tunnels.create(
                Spot(source_wing, source_room),
                Spot(target_wing, target_room),
                label=label,
                source_drawer=source_drawer_id or None,
                target_drawer=target_drawer_id or None,
            )
        return result(CreatedAnswer(success=True, tunnel=_tunnel(tunnel)))

    @offered("all")
    def list_tunnels(
        self, wing: Wing = "", limit: Limit = 100, offset: Offset = 0
    ) -> Annotated[CallToolResult, TunnelsAnswer]:
        """List the tunnels that were made by hand."""
        with self._asked() as castle:
            found = castle.tunnels.made(wing=wing or None)
        items = [_tunnel(tunnel) for tunnel in found[offset : offset + limit]]
        return page(items, len(found), offset, partial(listed, TunnelsAnswer, "tunnels"))

    @offered("all", "changes")
    def delete_tunnel(
        self,
        tunnel_id: Annotated[str, Field(description="the id, or at least 6 characters of its beginning")],
    ) -> Annotated[CallToolResult, DeletedAnswer]:
        """Delete a tunnel; making it again brings it back with its id."""
        with self._asked() as castle:
            gone = castle.tunnels.delete(tunnel_id)
        return result(DeletedAnswer(success=True, deleted=gone.id))

    @offered("standard")
    def follow_tunnels(
        self, wing: str, room: str, limit: Limit = 100, offset: Offset = 0
    ) -> Annotated[CallToolResult, ConnectionsAnswer]:
        """Show where a room of a wing leads, with the beginning of the drawer there."""
        from castle.store.tunnel_values import Spot

        with self._asked() as castle:
            found = castle.tunnels.follow(Spot(wing, room))
        items = [_connection(way) for way in found[offset : offset + limit]]
        return page(items, len(found), offset, partial(listed, ConnectionsAnswer, "connections"))


def _tunnel(tunnel: Tunnel) -> TunnelItem:
    return TunnelItem(
        tunnel_id=tunnel.id,
        source_wing=tunnel.source.wing,
        source_room=tunnel.source.room,
        target_wing=tunnel.target.wing,
        target_room=tunnel.target.room,
        label=quoted(tunnel.label),
        source_drawer_id=tunnel.source_drawer or "",
        target_drawer_id=tunnel.target_drawer or "",
        created_at=time_of(tunnel.created_at),
        updated_at=time_of(tunnel.updated_at),
    )


def _passages(found: Passages) -> list[PassageItem]:
    tunnels = [
        PassageItem(
            kind="made",
            tunnel_id=tunnel.id,
            source_wing=tunnel.source.wing,
            source_room=tunnel.source.room,
            target_wing=tunnel.target.wing,
            target_room=tunnel.target.room,
            label=quoted(tunnel.label),
        )
        for tunnel in found.made
    ]
    rooms = [PassageItem(kind="same room", **_shared(room).model_dump()) for room in found.rooms]
    topics = [
        PassageItem(kind="shared topic", topic=quoted(topic.topic), **_wings(topic.wings))
        for topic in found.topics
    ]
    return tunnels + rooms + topics


def _shared(room: SharedRoom) -> SharedItem:
    return SharedItem(
        room=room.room, drawers=room.drawers, last_at=time_of(room.last_at), **_wings(room.wings)
    )


def _step(step: Step) -> StepItem:
    return StepItem(
        room=step.room,
        hop=step.hop,
        drawers=step.drawers,
        via=list(step.via[:NAMES]),
        **_wings(step.wings),
    )


def _wings(wings: Sequence[str]) -> dict[str, Any]:
    return {"wings": list(wings[:NAMES]), "in_wings": len(wings) if len(wings) > NAMES else 0}


def _connection(way: Connection) -> ConnectionItem:
    return ConnectionItem(
        drawer_id=way.drawer or "",
        content=way.preview,
        kind=way.kind,
        direction=way.direction,
        wing=way.wing,
        room=way.room,
        label=quoted(way.label),
        tunnel_id=way.tunnel or "",
    )
