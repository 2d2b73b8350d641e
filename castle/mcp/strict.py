"""A server that refuses what it does not know: unknown tools, unknown parameters, values that do not fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, InputRequiredResult
from pydantic import ValidationError

OTHER_NAMES = {
    "count": "limit",
    "drawer": "id",
    "drawer_id": "id",
    "entity_name": "entity",
    "k": "limit",
    "max_results": "limit",
    "n": "limit",
    "n_results": "limit",
    "neighbours": "context",
    "num_results": "limit",
    "page_size": "limit",
    "path": "source",
    "project": "wing",
    "q": "query",
    "results": "limit",
    "skip": "offset",
    "text": "query",
    "top_k": "limit",
}
"""What other tools call the same thing."""


class StrictServer(MCPServer[Any]):
    """An MCPServer that checks each call against its tools before they see it."""

    def __init__(self, name: str, *, tools: Sequence[Tool], **more: Any) -> None:
        self._parameters = {tool.name: tuple(tool.parameters.get("properties", {})) for tool in tools}
        super().__init__(name, tools=list(tools), **more)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; a call that does not fit it is the protocol's error for invalid parameters."""
        parameters = self._parameters.get(name)
        if parameters is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {name!r}{_nearest(name, self._parameters)}")
        unknown = [key for key in arguments if key not in parameters]
        if unknown:
            raise MCPError(INVALID_PARAMS, _unknown(name, unknown[0], parameters))
        # Models write null for what they leave out.
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            return await super().call_tool(name, given, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise MCPError(INVALID_PARAMS, _unfit(name, error.__cause__)) from error
            # The SDK puts the tool's name before what the tool said.
            raise error.__cause__ if isinstance(error.__cause__, ToolError) else error from None


def _unknown(tool: str, key: str, parameters: Sequence[str]) -> str:
    other = OTHER_NAMES.get(key, "")
    hint = f": did you mean {other}?" if other in parameters else _nearest(key, parameters)
    takes = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
    return f"{tool} has no parameter {key!r}{hint or ':'} {takes}"


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name.lower(), list(known), 1, 0.5)
    return f": did you mean {close[0]}?" if close else ""


def _unfit(tool: str, error: ValidationError) -> str:
    faults = [f"{'.'.join(str(part) for part in fault['loc'])}: {_said(fault)}" for fault in error.errors()]
    return f"{tool}: {'; '.join(faults)}"


def _said(fault: Mapping[str, Any]) -> str:
    given = repr(fault["input"])
    shown = "" if fault["type"] == "missing" else f", not {given if len(given) <= 60 else given[:57] + '...'}"
    return f"{fault['msg'][:1].lower()}{fault['msg'][1:]}{shown}"
