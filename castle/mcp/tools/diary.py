"""The tools of agents' diaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import Answer, Next, Quoted
from castle.mcp.budget import fitted, result
from castle.mcp.tools.base import Limit, Offset, Palace, Wing, must_exist, offered

if TYPE_CHECKING:
    from castle.mine.diary import Entry

REST = "castle_get_drawer {drawer_id} with context gives the rest"

AgentName = Annotated[str, Field(description="whose diary, in any case of letters")]


MOST_IDS = 10
"""Drawers of a long entry that an answer names."""

Ids = Annotated[list[str], Field(description="of a long entry: its first drawers")]


class WrittenAnswer(Answer):
    """Where an entry is filed: ``drawer_id`` is the first of its ``drawers``."""

    success: bool
    drawer_id: str
    drawer_ids: Ids = []
    drawers: int = 1
    agent_name: str
    wing: str
    topic: str
    authored_at: str


class EntryItem(Quoted):
    """An entry; it begins in drawer ``drawer_id`` and fills as many as ``drawers`` says."""

    drawer_ids: Ids = []
    drawers: int = 1
    wing: str
    topic: str
    authored_at: str


class EntriesAnswer(Answer):
    """An agent's entries, the newest first; ``showing`` of ``total``."""

    agent_name: str
    total: int
    showing: int
    offset: int = 0
    next_offset: Next = None
    entries: list[EntryItem]


class Diary(Palace):
    """What agents write down for later."""

    @offered("standard", "adds", idempotent=False)
    def diary_write(
        self,
        agent_name: AgentName,
        entry: Annotated[str, Field(description="plain words or AAAK")],
        topic: str = "general",
        wing: Annotated[str, Field(description="the agent's own, wing_<agent>, if left out")] = "",
    ) -> Annotated[CallToolResult, WrittenAnswer]:
        """File an entry of your diary: what you did, learned and decided. Entries are never changed."""
        with self._asked() as castle:
            must_exist(castle)
            written = castle.diary_write(agent_name, entry, topic=topic, wing=wing or None)
        return result(
            WrittenAnswer(
                success=True,
                drawer_id=written.drawers[0],
                drawer_ids=_several(written),
                drawers=len(written.drawers),
                agent_name=written.agent,
                wing=written.wing,
                topic=written.topic,
                authored_at=written.timestamp,
            )
        )

    @offered("standard")
    def diary_read(
        self,
        agent_name: AgentName,
        last_n: Limit = 10,
        wing: Wing = "",
        offset: Annotated[Offset, Field(description="newer entries to pass over")] = 0,
    ) -> Annotated[CallToolResult, EntriesAnswer]:
        """Read an agent's last diary entries, newest first."""
        with self._asked() as castle:
            found = castle.diary_read(agent_name, last=offset + last_n, wing=wing or None)

        def answer(entries: list[EntryItem]) -> EntriesAnswer:
            end = offset + len(entries)
            return EntriesAnswer(
                agent_name=found.agent,
                total=found.total,
                showing=len(entries),
                offset=offset,
                next_offset=end if entries and end < found.total else None,
                entries=entries,
            )

        return fitted([_entry(entry) for entry in found.entries[offset:]], answer, rest=REST)


def _entry(entry: Entry) -> EntryItem:
    return EntryItem(
        drawer_id=entry.drawers[0],
        content=entry.content,
        drawer_ids=_several(entry),
        drawers=len(entry.drawers),
        wing=entry.wing,
        topic=entry.topic,
        authored_at=entry.timestamp,
    )


def _several(entry: Entry) -> list[str]:
    return list(entry.drawers[:MOST_IDS]) if len(entry.drawers) > 1 else []
