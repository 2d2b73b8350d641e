"""What tunnels are made of, as other modules see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from castle.config import check_name
from castle.errors import UsageError

Kind = Literal["made", "same room", "shared topic"]


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A room of a wing."""

    wing: str
    room: str

    def __str__(self) -> str:
        return f"{self.wing}/{self.room}"


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel that somebody made; ``updated_at`` is None when it is as it was made."""

    id: str
    source: Spot
    target: Spot
    label: str
    source_drawer: str | None
    target_drawer: str | None
    created_at: int
    updated_at: int | None
    recorded_by: str


@dataclass(frozen=True, slots=True)
class SharedRoom:
    """A room that stands in several wings; ``drawers`` and ``last_at`` are over all of them."""

    room: str
    wings: tuple[str, ...]
    halls: tuple[str, ...]
    drawers: int
    last_at: int


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic that several wings are about."""

    topic: str
    wings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passages:
    """What leads from wing to wing; ``total`` counts all, the lists may be cut."""

    total: int
    made: tuple[Tunnel, ...]
    rooms: tuple[SharedRoom, ...]
    topics: tuple[SharedTopic, ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a room leads: by a tunnel that was made, or to the room of the same name in another wing.

    ``preview`` is the beginning of the served text of the drawer the tunnel names, empty without one or when
    it is not current.
    """

    kind: Kind
    direction: Literal["outgoing", "incoming", "both"]
    wing: str
    room: str
    label: str
    tunnel: str | None
    drawer: str | None
    preview: str


@dataclass(frozen=True, slots=True)
class Step:
    """A room that can be reached; ``via`` are the wings, or tunnels by hand, that lead there."""

    room: str
    hop: int
    wings: tuple[str, ...]
    halls: tuple[str, ...]
    drawers: int
    via: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Traversal:
    """The rooms within some hops of a start; ``total`` counts all, ``steps`` may be cut."""

    start: str
    max_hops: int
    total: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class GraphStats:
    """Counts over the rooms of a palace.

    ``total_edges`` counts, for each room in several wings, each pair of them once for every hall of the room.
    """

    total_rooms: int
    tunnel_rooms: int
    total_edges: int
    made: int
    rooms_per_wing: dict[str, int]
    top_tunnels: tuple[SharedRoom, ...]


def parse_spot(text: str) -> Spot:
    """Read ``WING/ROOM``; raises UsageError."""
    wing, slash, room = text.strip().partition("/")
    if not slash:
        raise UsageError(f"{text!r} is no place: write WING/ROOM, as `castle status` shows them")
    return Spot(check_name("wing", wing.strip()), check_name("room", room.strip()))
