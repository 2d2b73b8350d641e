"""The tools that tell of what hooks have saved."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from castle import config
from castle.mcp.answers import Answer
from castle.mcp.budget import result
from castle.mcp.tools.base import MOST_PATH, Palace, offered, short, time_of


class FiledAnswer(Answer):
    """What has been saved since this was last asked: ``count`` messages, the last at ``timestamp``."""

    status: Literal["quiet", "ok", "error"]
    message: str
    count: int
    timestamp: str = ""


class HookSettingsAnswer(Answer):
    """The settings in force, which of them the call has set, and which of those have no effect."""

    success: bool
    settings: dict[str, bool | int]
    updated: list[str]
    ignored: list[str] = []


class Capture(Palace):
    """What hooks have saved, and how they do it."""

    @offered("standard")
    def memories_filed_away(self) -> Annotated[CallToolResult, FiledAnswer]:
        """Tell what has been saved of sessions since this was last asked, and whether a save failed."""
        with self._asked() as castle:
            found = castle.memories_filed_away()
        return result(
            FiledAnswer(
                status=found.status,
                message=short(found.message, MOST_PATH),
                count=found.count,
                timestamp=time_of(found.timestamp),
            )
        )

    @offered("all", "changes")
    def hook_settings(
        self,
        silent_save: Annotated[
            bool | None, Field(description="no effect any more: saves never interrupt")
        ] = None,
        desktop_toast: Annotated[bool | None, Field(description="a desktop message after a save")] = None,
    ) -> Annotated[CallToolResult, HookSettingsAnswer]:
        """Show or change how hooks save sessions; without parameters nothing is changed."""
        with self._asked() as castle:
            found = castle.hook_settings(silent_save=silent_save, desktop_toast=desktop_toast)
            hooks = config.load(home=castle.settings.home).hooks
        return result(
            HookSettingsAnswer(
                success=True,
                settings=asdict(hooks),
                updated=list(found.updated),
                ignored=list(found.ignored),
            )
        )
