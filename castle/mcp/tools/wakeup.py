"""The tools that an agent begins with, and that say what it should begin with."""

from __future__ import annotations

from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from castle.mcp.answers import Answer, Text
from castle.mcp.budget import result
from castle.mcp.tools.base import MOST_PATH, DrawerId, Palace, Wing, offered, short


class WakeUpAnswer(Answer):
    """Who the user is, and the essentials of a wing ("" is all of them)."""

    text: Text
    estimated_tokens: int
    wing: str
    drawer_ids: list[str] = []
    left_out: Annotated[int, Field(description="of the next best, for want of room")] = 0
    degraded: Annotated[list[str], Field(description="what is not in order")] = []
    pending: list[str] = []


class PinAnswer(Answer):
    """Whether a drawer is pinned now, and whether this call made it so."""

    success: bool
    drawer_id: str
    pinned: bool
    changed: bool


class Waking(Palace):
    """What comes back unasked."""

    @offered("core")
    def wake_up(self, wing: Wing = "") -> Annotated[CallToolResult, WakeUpAnswer]:
        """Get who the user is and what matters most, in 900 tokens at most: call it when you begin."""
        from castle.mine.formats import recall_block
        from castle.wakeup.page import wrapped_tokens

        with self._asked() as castle:
            found = castle.wake_up(wing or None)
        return result(
            WakeUpAnswer(
                text=recall_block(found.text),
                estimated_tokens=wrapped_tokens(found.text),
                wing=found.wing or "",
                drawer_ids=list(found.drawers),
                left_out=found.left_out,
                degraded=[short(reason, MOST_PATH) for reason in found.degraded],
                pending=[short(reason, MOST_PATH) for reason in found.pending],
            )
        )

    @offered("all", "adds")
    def pin_drawer(
        self,
        drawer_id: DrawerId,
        pinned: Annotated[bool, Field(description="false takes the pin away")] = True,
    ) -> Annotated[CallToolResult, PinAnswer]:
        """Put a drawer first at every wake-up, or no longer."""
        with self._asked() as castle:
            done = castle.pin(drawer_id) if pinned else castle.unpin(drawer_id)
        return result(PinAnswer(success=True, drawer_id=done.id, pinned=done.pinned, changed=done.changed))
