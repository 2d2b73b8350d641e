"""The tools that file single drawers, change them, and put them out of sight and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import Answer, Quoted
from castle.mcp.budget import fitted, result
from castle.mcp.tools.base import DrawerId, Palace, must_exist, offered

MOST_IDS = 100
"""Drawers of a long note that an answer names."""

Ids = Annotated[list[str], Field(description="when it is of several drawers: the first of them")]
Exact = Annotated[str, Field(description="the exact words")]


class AddedAnswer(Answer):
    """What was filed, as it was read back; ``drawers`` is how many hold it."""

    success: bool
    reason: str = ""
    drawer_id: str
    drawer_ids: Ids = []
    drawers: int = 1
    wing: str
    room: str
    sha256: str


class UpdatedAnswer(Answer):
    """A note after its change; ``sha256`` is that of the whole note."""

    success: bool
    noop: bool = False
    drawer_id: str
    drawer_ids: Ids = []
    drawers: int = 1
    previous_drawer_id: str = ""
    wing: str
    room: str
    revision: int
    sha256: str
    notes: list[str] = []


class PutAnswer(Answer):
    """A drawer that was put out of sight or back, and how to undo it."""

    success: bool
    drawer_id: str
    state: str
    noop: bool = False
    undo: str


class MatchItem(Quoted):
    """A drawer that says nearly the same, with its beginning; ``similarity`` 1 is the same text."""

    wing: str
    room: str
    similarity: float


class DuplicatesAnswer(Answer):
    """Whether everything in a text is filed already."""

    is_duplicate: bool
    matches: list[MatchItem]
    degraded: list[str] = []


class Drawers(Palace):
    """Filing and changing single drawers."""

    @offered("core", "adds")
    def add_drawer(
        self,
        wing: Annotated[str, Field(description="project or person")],
        room: Annotated[str, Field(description="topic")],
        content: Exact,
        source_file: Annotated[str, Field(description="where it comes from")] = "",
        added_by: str = "mcp",
    ) -> Annotated[CallToolResult, AddedAnswer]:
        """File a note word for word. The same content in the same place is filed once."""
        with self._asked() as castle:
            must_exist(castle)
            added = castle.add(
                content, wing=wing, room=room, source_file=source_file or None, added_by=added_by or None
            )
        return result(
            AddedAnswer(
                success=True,
                reason=added.reason,
                drawer_id=added.id,
                drawer_ids=_several(added.ids),
                drawers=len(added.ids),
                wing=added.wing,
                room=added.room,
                sha256=added.sha256,
            )
        )

    @offered("core")
    def check_duplicate(
        self,
        content: Annotated[str, Field(description="what you would file")],
        threshold: Annotated[float, Field(ge=0, le=1)] = 0.9,
    ) -> Annotated[CallToolResult, DuplicatesAnswer]:
        """Ask whether a text is filed already, word for word or nearly so, before you file it."""
        with self._asked() as castle:
            found = castle.check_duplicate(content, threshold=threshold)
        items = [
            MatchItem(
                drawer_id=match.id,
                wing=match.wing,
                room=match.room,
                similarity=match.similarity,
                content=match.text,
            )
            for match in found.matches
        ]

        def answer(matches: list[MatchItem]) -> DuplicatesAnswer:
            return DuplicatesAnswer(
                is_duplicate=found.is_duplicate, matches=matches, degraded=list(found.degraded)
            )

        return fitted(items, answer)

    @offered("standard", "changes")
    def update_drawer(
        self,
        drawer_id: DrawerId,
        content: Annotated[str, Field(description="the exact words that take its place")] = "",
        wing: Annotated[str, Field(description="move its note to this wing")] = "",
        room: Annotated[str, Field(description="move its note to this room")] = "",
        expected_sha256: Annotated[
            str, Field(description="of what you read: nothing happens if it was changed since")
        ] = "",
    ) -> Annotated[CallToolResult, UpdatedAnswer]:
        """Change a note: other content is its next revision, history finds what it said before.

        Drawers of files and conversations are changed where they come from.
        """
        with self._asked() as castle:
            changed = castle.update(
                drawer_id,
                content or None,
                wing=wing or None,
                room=room or None,
                expected_sha256=expected_sha256 or None,
                added_by="mcp",
            )
        return result(
            UpdatedAnswer(
                success=True,
                noop=changed.noop,
                drawer_id=changed.id,
                drawer_ids=_several(changed.ids),
                drawers=len(changed.ids),
                previous_drawer_id="" if changed.previous == changed.id else changed.previous,
                wing=changed.wing,
                room=changed.room,
                revision=changed.revision,
                sha256=changed.sha256,
                notes=list(changed.notes),
            )
        )

    @offered("standard", "changes")
    def delete_drawer(self, drawer_id: DrawerId) -> Annotated[CallToolResult, PutAnswer]:
        """Put a drawer out of sight. Nothing is lost: it can be restored."""
        with self._asked() as castle:
            full = castle.get(drawer_id)[0].id
            count = castle.forget(full)
        undo = f"castle_restore_drawer or `castle restore {full}` brings it back"
        return result(PutAnswer(success=True, drawer_id=full, state="forgotten", noop=not count, undo=undo))

    @offered("standard", "adds")
    def restore_drawer(self, drawer_id: DrawerId) -> Annotated[CallToolResult, PutAnswer]:
        """Bring back a drawer that was deleted."""
        with self._asked() as castle:
            full = castle.get(drawer_id)[0].id
            count = castle.restore(full)
            state = castle.get(full)[0].state
        undo = f"castle_delete_drawer or `castle forget {full}` puts it out of sight"
        return result(PutAnswer(success=True, drawer_id=full, state=state, noop=not count, undo=undo))


def _several(ids: Sequence[str]) -> list[str]:
    """Return the ids of a note of several drawers, as many as an answer has room for."""
    return list(ids[:MOST_IDS]) if len(ids) > 1 else []
