"""What ``Castle`` answers with: drawers as they may be shown, and pages of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle.records import Address, Drawer, State

if TYPE_CHECKING:
    from castle.store.reading import SourceInfo


@dataclass(frozen=True, slots=True)
class Found:
    """One drawer with everything that may be shown of it; ``text`` is served text."""

    id: str
    text: str
    wing: str
    room: str
    hall: str
    kind: str
    role: str
    speaker: str
    message_id: str
    source: str
    address: Address
    authored_at: int
    filed_at: int
    added_by: str
    sha256: str
    state: State
    sealed: int


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, and how many there are in all."""

    total: int
    offset: int
    drawers: tuple[Found, ...] = ()
    sources: tuple[SourceInfo, ...] = ()


def to_found(drawer: Drawer, address: Address) -> Found:
    """Return what may be shown of a drawer."""
    from castle.store.reading import served

    return Found(
        id=drawer.id,
        text=served(drawer),
        wing=drawer.wing,
        room=drawer.room,
        hall=drawer.hall,
        kind=drawer.kind,
        role=drawer.role,
        speaker=drawer.speaker,
        message_id=drawer.message_id,
        source=drawer.source,
        address=address,
        authored_at=drawer.authored_at,
        filed_at=drawer.filed_at,
        added_by=drawer.added_by,
        sha256=drawer.sha256,
        state=drawer.state,
        sealed=len(drawer.sealed),
    )
