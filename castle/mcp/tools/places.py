"""The tools that show what the palace holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult

from castle.mcp.answers import (
    Answer,
    IndexItem,
    Next,
    PlaceItem,
    PlacesAnswer,
    SessionItem,
    SessionsAnswer,
    StatusAnswer,
)
from castle.mcp.budget import result
from castle.mcp.quoting import harmless
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
    from castle.store.receipts import Receipt
    from castle.store.session_reading import SessionRow


HELP = (
    "the server's instructions hold the protocol of the palace; castle_get_aaak_spec (set all) explains AAAK"
)


class TaxonomyAnswer(Answer):
    """How many drawers are current in each room of each wing; ``total`` counts rooms."""

    total: int
    offset: int
    next_offset: Next = None
    taxonomy: dict[str, dict[str, int]]


class SpecAnswer(Answer):
    """How AAAK is read and written."""

    aaak_spec: str


class ReconnectedAnswer(Answer):
    """How many drawers the palace holds that was opened again."""

    success: bool
    drawers: int


class Places(Palace):
    """Wings, rooms, sessions, and the state of it all."""

    @offered("core")
    def status(self) -> Annotated[CallToolResult, StatusAnswer]:
        """Tell what the palace holds and whether its indexes are up to date."""
        from castle.search.engines import absent

        with self._asked() as castle:
            found = castle.status()
            failed = castle.last_failed_save()
            settings = castle.settings
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
                old_detector=found.old_detector,
                unfinished_purges=found.unfinished_purges,
                reindex=short(found.reindex, MOST_PATH),
                absent=[short(part, MOST_PATH) for part in absent(settings)],
                last_failed_save="" if failed is None else _failure(failed),
                help=HELP,
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

    @offered("all")
    def get_taxonomy(self, offset: Offset = 0) -> Annotated[CallToolResult, TaxonomyAnswer]:
        """Count the drawers of every room of every wing."""
        with self._asked() as castle:
            places = castle.places()
        items = [PlaceItem(wing=place.wing, room=place.room, drawers=place.current) for place in places]

        def answer(total: int, start: int, following: int | None, shown: list[PlaceItem]) -> TaxonomyAnswer:
            taxonomy: dict[str, dict[str, int]] = {}
            for item in shown:
                taxonomy.setdefault(item.wing, {})[item.room] = item.drawers
            return TaxonomyAnswer(total=total, offset=start, next_offset=following, taxonomy=taxonomy)

        return page(items[offset:], len(items), offset, answer)

    @offered("all")
    def get_aaak_spec(self) -> Annotated[CallToolResult, SpecAnswer]:
        """Tell how AAAK, the shorthand of summaries, is read and written."""
        from castle.text.aaak import aaak_spec

        return result(SpecAnswer(aaak_spec=aaak_spec()))

    @offered("all")
    def reconnect(self) -> Annotated[CallToolResult, ReconnectedAnswer]:
        """Close the palace and open it again, with its settings read anew."""
        with self._lock:
            if self._castle is not None:
                self._castle.close()
                self._castle = None
        with self._asked() as castle:
            found = castle.status()
        return result(ReconnectedAnswer(success=True, drawers=found.drawers))


def _failure(receipt: Receipt) -> str:
    what = f"session {receipt.session}" if receipt.session else "what a hook noted"
    where = f"{what} at {time_of(receipt.at)}"
    return harmless(f"{where} is not filed, tell the user: {short(receipt.detail, MOST_PATH)}")


def _session(row: SessionRow) -> SessionItem:
    return SessionItem(
        session=row.session,
        format=row.format,
        title=harmless(short(row.title, PREVIEW)),
        wing=row.wing,
        cwd=short(row.cwd, MOST_PATH),
        messages=row.messages,
        started_at=time_of(row.started_at),
        ended_at=time_of(row.ended_at),
        source=row.source,
    )
