"""Describing tools when a client first asks for them: a handshake needs none of their schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp.server.mcpserver.tools import Tool, ToolManager


class Later(ToolManager):
    """The tools that ``describe`` returns, which is called once and not before they are needed."""

    def __init__(self, describe: Callable[[], Sequence[Tool]]) -> None:
        super().__init__()
        self._describe = describe

    def list_tools(self) -> list[Tool]:
        """Return all tools."""
        if not self._tools:
            self._tools = {tool.name: tool for tool in self._describe()}
        return super().list_tools()

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool of that name, None when there is none."""
        self.list_tools()
        return super().get_tool(name)
