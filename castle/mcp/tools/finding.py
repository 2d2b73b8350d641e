"""The tools that find drawers and show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field, WithJsonSchema

from castle.clock import to_iso
from castle.mcp.answers import (
    DrawerAnswer,
    DrawersAnswer,
    ExactItem,
    HitItem,
    MemoryItem,
    Sanitizer,
    SearchAnswer,
)
from castle.mcp.budget import ANOTHER_CALL, fitted
from castle.mcp.quoting import harmless
from castle.mcp.tools.base import (
    MOST_PATH,
    PREVIEW,
    AsOf,
    DrawerId,
    History,
    Kinds,
    Limit,
    Offset,
    Palace,
    Room,
    Source,
    Wing,
    drawer_fields,
    drawer_item,
    listed,
    offered,
    page,
    short,
)
from castle.search.cursor import moved
from castle.store.projection import legal_text
from castle.text.sanitize import Sanitized, sanitize

if TYPE_CHECKING:
    from castle.answers import Found
    from castle.records import Hit, Remembered, SearchResult


NoEffect = Annotated[float | None, WithJsonSchema({"type": "number", "description": "no effect"})]
"""Other products cut hits off at a number; here they are ranked, and ``confident`` says how good they are."""


class Finding(Palace):
    """Finding drawers again."""

    @offered("core")
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
        include_state: Annotated[bool, Field(description="each hit's memory state")] = False,
        hide_cold: Annotated[bool, Field(description="no cold or expired memories")] = False,
        retention_weight: Annotated[float, Field(ge=0, le=1)] = 0.0,
        cursor: Annotated[str, Field(description="next_cursor")] = "",
        max_distance: NoEffect = None,
        min_similarity: NoEffect = None,
        context: Annotated[str, Field(description="no effect, sent back")] = "",
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Find the exact words again, best first, by meaning and by words."""
        asked = sanitize(legal_text(query))
        unused = {"max_distance": max_distance, "min_similarity": min_similarity}
        ignored = [name for name, value in unused.items() if value is not None]
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
                hide_cold=hide_cold,
                retention_weight=retention_weight,
                include_state=include_state,
            )

        skipped = self._skipped(found)

        def answer(hits: list[HitItem]) -> SearchAnswer:
            total = len(found.hits)
            return SearchAnswer(
                total=total,
                left_out=total - len(hits),
                ranked=found.ranked,
                next_cursor=found.cursor or "" if len(hits) == total else moved(found.here, len(hits)),
                confident=found.confident,
                behind=found.behind,
                degraded=[short(reason, MOST_PATH) for reason in found.degraded],
                skipped=[short(reason, MOST_PATH) for reason in skipped],
                hidden=dict(found.hidden),
                query_sanitized=asked.was_sanitized,
                sanitizer=_sanitizer(asked),
                ignored=ignored,
                context_received=harmless(legal_text(context[:PREVIEW])),
                hits=hits,
            )

        return fitted([_hit(hit) for hit in found.hits], answer)

    def _skipped(self, found: SearchResult) -> list[str]:
        """Return what did not run; what is just not there or not asked for is told once, then in status."""
        lines = {f"{s.name} {s.status}": s.status for s in found.stages if s.status != "ran"}
        reasons = {line: status.removeprefix("skipped: ") for line, status in lines.items()}
        amiss = [line for line, reason in reasons.items() if any(reason in told for told in found.degraded)]
        shown = [line for line in lines if line in amiss or line not in self._told]
        self._told.update(line for line in shown if line not in amiss)
        return shown

    @offered("core")
    def get_drawer(
        self,
        drawer_id: DrawerId,
        context: Annotated[int, Field(ge=0, le=100, description="drawers before and after it, too")] = 0,
    ) -> Annotated[CallToolResult, DrawerAnswer]:
        """Get a drawer word for word, with its neighbours in its source if you ask for context."""
        with self._asked() as castle:
            found = castle.get(drawer_id, context=context)
        order = {one.id: index for index, one in enumerate(found)}
        asked = _place_of(found, drawer_id)
        nearest_first = sorted(found, key=lambda one: abs(order[one.id] - asked))

        def answer(drawers: list[ExactItem]) -> DrawerAnswer:
            drawers.sort(key=lambda item: order[item.drawer_id])
            return DrawerAnswer(total=len(found), left_out=len(found) - len(drawers), drawers=drawers)

        rest = "`castle get {drawer_id}` prints all of it" if len(found) == 1 else ANOTHER_CALL
        items = [ExactItem(**drawer_fields(one), sha256=one.sha256) for one in nearest_first]
        return fitted(items, answer, first_whole=True, rest=rest)

    @offered("standard")
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
            found = castle.list_drawers(
                wing=wing or None,
                room=room or None,
                source=source or None,
                kinds=kinds,
                history=history,
                as_of=as_of or None,
                limit=limit,
                offset=offset,
            )
        items = [drawer_item(one) for one in found.drawers]
        return page(items, found.total, offset, partial(listed, DrawersAnswer, "drawers"), longest=PREVIEW)


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
    fields = drawer_fields(hit)
    return HitItem(**fields, score=round(hit.score, 4), copies=len(hit.copies), memory=_memory(hit.memory))


def _memory(held: Remembered | None) -> MemoryItem | None:
    if held is None:
        return None
    ended = "" if held.invalidated_at is None else to_iso(held.invalidated_at)
    return MemoryItem(**{**asdict(held), "invalidated_at": ended})


def _place_of(found: Sequence[Found], drawer_id: str) -> int:
    begins = drawer_id.strip().lower()
    return next((index for index, one in enumerate(found) if one.id.startswith(begins)), 0)
