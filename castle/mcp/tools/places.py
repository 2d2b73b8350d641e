"""The tools that show what the palace holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult

from castle.mcp.answers import IndexItem, PlaceItem, PlacesAnswer, SessionItem, SessionsAnswer, StatusAnswer
from castle.mcp.budget import result
from castle.mcp.tools.base import (
    MOST_PATH,
    PREVIEW,
    Limit,
    Offset,
    Palace,
    Wing,
    listed,
    offered,
    page,
    short,
    time_of,
)

if TYPE_CHECKING:
    from castle.store.reading import PlaceCount
    from castle.store.session_reading import SessionRow


class Places(Palace):
    """Wings, rooms, sessions, and the state of it all."""

    @offered("core")
    def status(self) -> Annotated[CallToolResult, StatusAnswer]:
        """Tell what the palace holds and whether its indexes are up to date."""
        with self._asked() as castle:
            found = castle.status()
        return result(
            StatusAnswer(
                palace=found.palace,
                embedder=found.embedder,
                sources=found.sources,
                drawers=found.drawers,
                superseded=found.superseded,
                forgotten=found.forgotten,
                wings=len({place.wing for place in found.places}),
                rooms=len(found.places),
                spool_events=found.spool_events,
                bytes=found.ledger_bytes
                + found.cache_bytes
                + sum(index.bytes for index in found.projections),
                indexes=[
                    IndexItem(
                        name=index.name,
                        behind=index.behind,
                        bytes=index.bytes,
                        trouble=short(index.trouble, MOST_PATH),
                    )
                    for index in found.projections
                ],
            )
        )

    @offered("standard")
    def list_wings(self, limit: Limit = 100, offset: Offset = 0) -> Annotated[CallToolResult, PlacesAnswer]:
        """List the wings (projects, people) with their numbers of rooms and drawers."""
        with self._asked() as castle:
            places = castle.places()
        wings: dict[str, list[PlaceCount]] = {}
        for place in places:
            wings.setdefault(place.wing, []).append(place)
        items = [
            PlaceItem(
                wing=wing,
                rooms=len(rooms),
                drawers=sum(room.current for room in rooms),
                superseded=sum(room.superseded for room in rooms),
                forgotten=sum(room.forgotten for room in rooms),
            )
            for wing, rooms in wings.items()
        ]
        return page(
            items[offset : offset + limit], len(items), offset, partial(listed, PlacesAnswer, "places")
        )

    @offered("standard")
    def list_rooms(
        self, wing: Wing = "", limit: Limit = 100, offset: Offset = 0
    ) -> Annotated[CallToolResult, PlacesAnswer]:
        """List the rooms (topics) of all wings or of one, with their numbers of drawers."""
        with self._asked() as castle:
            places = castle.places()
        items = [
            PlaceItem(
                wing=place.wing,
                room=place.room,
                drawers=place.current,
                superseded=place.superseded,
                forgotten=place.forgotten,
            )
            for place in places
            if wing in ("", place.wing)
        ]
        return page(
            items[offset : offset + limit], len(items), offset, partial(listed, PlacesAnswer, "places")
        )

    @offered("standard")
    def list_sessions(
        self, wing: Wing = "", limit: Limit = 20, offset: Offset = 0
    ) -> Annotated[CallToolResult, SessionsAnswer]:
        """List the conversations that are filed, the latest first; source lists their drawers."""
        with self._asked() as castle:
            found = castle.sessions(wing=wing or None, limit=limit, offset=offset)
        items = [_session(row) for row in found.sessions]
        return page(items, found.total, offset, partial(listed, SessionsAnswer, "sessions"))


def _session(row: SessionRow) -> SessionItem:
    return SessionItem(
        session=row.session,
        format=row.format,
        title=short(row.title, PREVIEW),
        wing=row.wing,
        cwd=short(row.cwd, MOST_PATH),
        messages=row.messages,
        started_at=time_of(row.started_at),
        ended_at=time_of(row.ended_at),
        source=row.source,
    )
