"""The tools. Each asks ``Castle`` with the same parameters; "" and [] mean that one is not given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from castle.clock import to_iso
from castle.errors import CastleError
from castle.mcp.answers import (
    DrawerAnswer,
    DrawerItem,
    DrawersAnswer,
    FactItem,
    FactsAnswer,
    HitItem,
    IndexItem,
    PlaceItem,
    PlacesAnswer,
    Sanitizer,
    SearchAnswer,
    SessionItem,
    SessionsAnswer,
    StatusAnswer,
)
from castle.mcp.budget import ANOTHER_CALL, MOST, fitted, result
from castle.search.cursor import moved
from castle.text.sanitize import Sanitized, sanitize

if TYPE_CHECKING:
    from castle.answers import Found
    from castle.records import Hit
    from castle.service import Castle
    from castle.store.graph_values import Fact
    from castle.store.reading import PlaceCount
    from castle.store.session_reading import SessionRow

PREVIEW = 200
"""Characters of a text that a list shows."""

_PATH = 300
_DRAWERS = 5

Wing = Annotated[str, Field(description="only this wing")]
Room = Annotated[str, Field(description="only this room")]
Source = Annotated[str, Field(description="only this source: a path, its end, or a drawer's id")]
Kinds = Annotated[
    list[str], Field(description="only these kinds; without it all but tool, thinking, injected, subagent")
]
History = Annotated[bool, Field(description="superseded drawers too")]
AsOf = Annotated[str, Field(description="what was current at this ISO date or time")]
Limit = Annotated[int, Field(ge=1, le=100)]
Offset = Annotated[int, Field(ge=0)]


class Tools:
    """The tools of one palace, which is opened by the first that needs it. Calls are answered one by one."""

    def __init__(self, palace: str | None = None) -> None:
        self._palace = palace
        self._lock = threading.Lock()
        self._castle: Castle | None = None
        self._identity: tuple[int, int] | None = None

    def all(self) -> Sequence[Callable[..., Any]]:
        """Return the tools in the order in which they are listed."""
        return (
            self.search,
            self.get_drawer,
            self.list_drawers,
            self.list_wings,
            self.list_rooms,
            self.list_sessions,
            self.kg_query,
            self.status,
        )

    def search(
        self,
        query: Annotated[str, Field(description="what you look for, in any words")],
        wing: Wing = "",
        room: Room = "",
        limit: Limit = 5,
        since: Annotated[str, Field(description="written since this ISO time")] = "",
        until: Annotated[str, Field(description="before this time, or to this day")] = "",
        role: Annotated[str, Field(description="user, assistant")] = "",
        source: Source = "",
        kinds: Kinds = [],  # noqa: B006  (a schema's default, never written to)
        history: History = False,
        as_of: AsOf = "",
        mode: Literal["", "fast", "standard", "boosted", "max"] = "",
        by: Literal["drawer", "message", "session"] = "drawer",
        now: str = "",
        info_weight: bool | None = None,
        cursor: Annotated[str, Field(description="next_cursor")] = "",
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Find the exact words again, best first, by meaning and by words."""
        asked = sanitize(query)
        with self._asked() as castle:
            found = castle.search(
                asked.clean_query,
                wing=wing or None,
                room=room or None,
                limit=limit,
                since=since or None,
                until=until or None,
                role=role or None,
                source=source or None,
                kinds=kinds,
                history=history,
                as_of=as_of or None,
                mode=mode or None,
                by=by,
                now=now or None,
                info_weight=info_weight,
                cursor=cursor or None,
            )

        def answer(hits: list[HitItem]) -> SearchAnswer:
            total = len(found.hits)
            skipped = [f"{s.name} {s.status}" for s in found.stages if s.status != "ran"]
            return SearchAnswer(
                total=total,
                left_out=total - len(hits),
                ranked=found.ranked,
                next_cursor=found.cursor or "" if len(hits) == total else moved(found.here, len(hits)),
                confident=found.confident,
                behind=found.behind,
                degraded=[_short(reason, _PATH) for reason in found.degraded],
                skipped=[_short(reason, _PATH) for reason in skipped],
                query_sanitized=asked.was_sanitized,
                sanitizer=_sanitizer(asked),
                hits=hits,
            )

        return fitted([_hit(hit) for hit in found.hits], answer)

    def get_drawer(
        self,
        id: Annotated[str, Field(description="a drawer's id, or at least 6 characters of its beginning")],
        context: Annotated[int, Field(ge=0, le=100, description="drawers before and after it, too")] = 0,
    ) -> Annotated[CallToolResult, DrawerAnswer]:
        """Get a drawer word for word, with its neighbours in its source if you ask for context."""
        with self._asked() as castle:
            found = castle.get(id, context=context)
        order = {one.id: index for index, one in enumerate(found)}
        asked = _place_of(found, id)
        nearest_first = sorted(found, key=lambda one: abs(order[one.id] - asked))

        def answer(drawers: list[DrawerItem]) -> DrawerAnswer:
            drawers.sort(key=lambda item: order[item.id])
            return DrawerAnswer(total=len(found), left_out=len(found) - len(drawers), drawers=drawers)

        rest = "`castle get {id}` prints all of it" if len(found) == 1 else ANOTHER_CALL
        return fitted([_drawer(one) for one in nearest_first], answer, first_whole=True, rest=rest)

    def list_drawers(
        self,
        wing: Wing = "",
        room: Room = "",
        source: Source = "",
        kinds: Kinds = [],  # noqa: B006  (a schema's default, never written to)
        history: History = False,
        as_of: AsOf = "",
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, DrawersAnswer]:
        """List drawers in the order they were filed, with the beginning of each."""
        with self._asked() as castle:
            page = castle.list_drawers(
                wing=wing or None,
                room=room or None,
                source=source or None,
                kinds=kinds,
                history=history,
                as_of=as_of or None,
                limit=limit,
                offset=offset,
            )
        items = [_drawer(found) for found in page.drawers]
        return _page(items, page.total, offset, partial(_listed, DrawersAnswer, "drawers"), longest=PREVIEW)

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
        return _page(
            items[offset : offset + limit], len(items), offset, partial(_listed, PlacesAnswer, "places")
        )

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
        return _page(
            items[offset : offset + limit], len(items), offset, partial(_listed, PlacesAnswer, "places")
        )

    def list_sessions(
        self, wing: Wing = "", limit: Limit = 20, offset: Offset = 0
    ) -> Annotated[CallToolResult, SessionsAnswer]:
        """List the conversations that are filed, the latest first; source lists their drawers."""
        with self._asked() as castle:
            page = castle.sessions(wing=wing or None, limit=limit, offset=offset)
        items = [_session(row) for row in page.sessions]
        return _page(items, page.total, offset, partial(_listed, SessionsAnswer, "sessions"))

    def kg_query(
        self,
        entity: Annotated[str, Field(description="a person, project or thing")],
        as_of: Annotated[str, Field(description="what held at this ISO date or time")] = "",
        direction: Literal["outgoing", "incoming", "both"] = "both",
        as_recorded: Annotated[str, Field(description="what the graph said at this date or time")] = "",
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, FactsAnswer]:
        """Ask the knowledge graph what is known about an entity, with dates and evidence."""
        with self._asked() as castle:
            facts = castle.kg.query(
                entity,
                as_of=as_of or None,
                direction=direction,
                as_recorded=as_recorded or None,
                limit=limit,
                offset=offset,
            )

        def answer(total: int, start: int, following: int | None, items: list[FactItem]) -> FactsAnswer:
            return FactsAnswer(
                entity=facts.entity or entity,
                total=total,
                offset=start,
                next_offset=following,
                hidden=facts.hidden,
                facts=items,
            )

        return _page([_fact(fact) for fact in facts.facts], facts.total, offset, answer)

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
                        trouble=_short(index.trouble, _PATH),
                    )
                    for index in found.projections
                ],
            )
        )

    @contextmanager
    def _asked(self) -> Iterator[Castle]:
        """Give the open palace to one call at a time; an error of Castle's becomes one line of the tool's."""
        with self._lock:
            try:
                yield self._open()
            except CastleError as error:
                raise ToolError(str(error)) from error

    def _open(self) -> Castle:
        """Return the palace, opened again when another one has taken its place on disk."""
        from castle.service import Castle

        if self._castle is not None and _identity(self._castle.root) != self._identity:
            self._castle.close()
            self._castle = None
        if self._castle is None:
            self._castle = Castle(self._palace)
            self._identity = _identity(self._castle.root)
        return self._castle


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = (root / "castle.db").stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _page(
    items: Sequence[Any],
    total: int,
    offset: int,
    build: Callable[[int, int, int | None, list[Any]], Any],
    longest: int = MOST,
) -> CallToolResult:
    """Fit one page into the budget; the next one begins after what had room."""

    def answer(shown: list[Any]) -> Any:
        end = offset + len(shown)
        return build(total, offset, end if shown and end < total else None, shown)

    return fitted(items, answer, longest=longest)


def _listed(answer: type[Any], name: str, total: int, offset: int, following: int | None, items: Any) -> Any:
    return answer(total=total, offset=offset, next_offset=following, **{name: items})


def _sanitizer(asked: Sanitized) -> Sanitizer | None:
    if not asked.was_sanitized:
        return None
    return Sanitizer(
        method=asked.method,
        original_length=asked.original_length,
        clean_length=asked.clean_length,
        clean_query=asked.clean_query,
    )


def _hit(hit: Hit) -> HitItem:
    return HitItem(**_common(hit), score=round(hit.score, 4), copies=len(hit.copies))


def _drawer(found: Found) -> DrawerItem:
    return DrawerItem(**_common(found))


def _common(drawer: Hit | Found) -> dict[str, Any]:
    first, last = drawer.address.first_line, drawer.address.last_line
    return {
        "id": drawer.id,
        "text": drawer.text,
        "wing": drawer.wing,
        "room": drawer.room,
        "kind": drawer.kind,
        "role": drawer.role,
        "speaker": drawer.speaker,
        "source": _short(drawer.address.path, _PATH),
        "lines": str(first) if first == last else f"{first}-{last}",
        "authored_at": _time(drawer.authored_at),
        "filed_at": _time(drawer.filed_at),
        "state": drawer.state,
    }


def _session(row: SessionRow) -> SessionItem:
    return SessionItem(
        session=row.session,
        format=row.format,
        title=_short(row.title, PREVIEW),
        wing=row.wing,
        cwd=_short(row.cwd, _PATH),
        messages=row.messages,
        started_at=_time(row.started_at),
        ended_at=_time(row.ended_at),
        source=row.source,
    )


def _fact(fact: Fact) -> FactItem:
    drawers = [item.drawer for item in fact.evidence if item.drawer is not None]
    return FactItem(
        id=fact.id,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        valid_from=_time(fact.valid_from),
        valid_to=_time(fact.valid_to),
        state=fact.state,
        direction=fact.direction or "",
        confidence=fact.confidence,
        evidence_state=fact.evidence_state,
        evidence=len(fact.evidence),
        drawers=drawers[:_DRAWERS],
        recorded_at=_time(fact.recorded_at),
    )


def _place_of(found: Sequence[Found], id_: str) -> int:
    begins = id_.strip().lower()
    return next((index for index, one in enumerate(found) if one.id.startswith(begins)), 0)


def _time(micros: int | None) -> str:
    return "" if micros is None else to_iso(micros).replace(".000000", "")


def _short(text: str, limit: int) -> str:
    """Shorten what is long by accident, such as a path; the end of it tells more than the beginning."""
    return text if len(text) <= limit else f"…{text[-limit:]}"
