"""A server that refuses what it does not know: unknown tools, unknown parameters, values that do not fit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError

from castle.mcp.budget import Result, said, sendable
from castle.mcp.later import Later
from castle.mcp.lines import Lines
from castle.store.projection import legal_text

OTHER_NAMES = {
    "after": ("since",),
    "agent": ("agent_name",),
    "agent_id": ("agent_name",),
    "author": ("added_by", "agent_name"),
    "before": ("until",),
    "begin": ("since",),
    "body": ("content", "entry"),
    "collection": ("wing",),
    "content": ("entry", "query"),
    "count": ("limit", "last_n"),
    "cutoff": ("until",),
    "data": ("content", "entry"),
    "date": ("as_of", "since"),
    "depth": ("max_hops",),
    "description": ("label", "content"),
    "document": ("content",),
    "drawer": ("drawer_id",),
    "drawer_ids": ("drawer_id",),
    "end": ("until", "valid_to", "ended"),
    "end_date": ("until", "valid_to", "ended"),
    "end_time": ("until", "valid_to"),
    "ended": ("valid_to",),
    "ended_at": ("ended", "valid_to"),
    "entity_name": ("entity",),
    "entry": ("content",),
    "etag": ("expected_sha256",),
    "expected_hash": ("expected_sha256",),
    "fact": ("content",),
    "file": ("source_file", "source"),
    "file_path": ("source_file", "source"),
    "filename": ("source_file", "source"),
    "folder": ("room",),
    "from": ("since", "valid_from", "source_wing"),
    "from_date": ("since", "valid_from"),
    "hash": ("expected_sha256",),
    "hops": ("max_hops",),
    "id": ("drawer_id", "tunnel_id"),
    "ids": ("drawer_id",),
    "invalid_at": ("valid_to", "ended"),
    "k": ("limit", "top_k", "last_n"),
    "kind": ("kinds",),
    "last": ("last_n",),
    "limit": ("last_n",),
    "max_results": ("limit",),
    "memory": ("content", "entry", "query"),
    "memory_id": ("drawer_id",),
    "message": ("content", "entry"),
    "min_score": ("min_similarity", "threshold"),
    "n": ("limit", "last_n"),
    "n_results": ("limit",),
    "name": ("entity", "agent_name"),
    "namespace": ("wing",),
    "neighbors": ("context",),
    "neighbours": ("context",),
    "new_content": ("content",),
    "note": ("content", "entry"),
    "note_id": ("drawer_id",),
    "num_results": ("limit",),
    "obj": ("object",),
    "observation": ("content",),
    "page_size": ("limit",),
    "page_token": ("cursor",),
    "path": ("source", "source_file"),
    "per_page": ("limit",),
    "pred": ("predicate",),
    "project": ("wing",),
    "prompt": ("query",),
    "q": ("query",),
    "question": ("query",),
    "relation": ("predicate",),
    "relationship": ("predicate",),
    "results": ("limit",),
    "score": ("threshold", "min_similarity"),
    "search": ("query",),
    "search_query": ("query",),
    "sha256": ("expected_sha256",),
    "similarity": ("threshold", "min_similarity"),
    "size": ("limit",),
    "skip": ("offset",),
    "source": ("source_file", "source_drawer_id"),
    "source_drawer": ("source_drawer_id",),
    "source_id": ("source_drawer_id",),
    "start": ("since", "valid_from", "offset"),
    "start_date": ("since", "valid_from"),
    "start_time": ("since", "valid_from"),
    "subj": ("subject",),
    "tag": ("room", "topic"),
    "tags": ("room", "topic"),
    "target": ("object", "target_room"),
    "text": ("content", "entry", "query"),
    "threshold": ("min_similarity",),
    "title": ("label", "topic"),
    "to": ("until", "valid_to", "target_wing"),
    "to_date": ("until", "valid_to"),
    "top_k": ("limit",),
    "topic": ("room",),
    "topn": ("limit",),
    "type": ("kinds",),
    "user": ("agent_name", "wing"),
    "user_id": ("agent_name", "wing"),
    "valid_at": ("as_of",),
    "valid_until": ("valid_to",),
    "value": ("object", "content"),
    "workspace": ("wing",),
}
"""What other products call the same thing: what it is here, first what is likeliest."""


EXACT = ("content", "entry")
"""Parameters whose every byte counts; from others half surrogate pairs, which no database takes, are gone."""


class StrictServer(MCPServer[Any]):
    """An MCPServer that checks each call against its tools before they see it.

    ``elsewhere`` names the tools that it does not offer, each with the smallest set that has it.
    """

    def __init__(
        self,
        name: str,
        *,
        tools: Callable[[], Sequence[Tool]],
        elsewhere: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        super().__init__(name, **more)
        self._tool_manager = Later(tools)
        self._elsewhere = elsewhere

    async def run_stdio_async(self) -> None:
        """Serve one client on stdin and stdout."""
        async with stdio_server() as (lines, answers):
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(Lines(lines), answers, options)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Result:
        """Call a tool; a call that does not fit it is the protocol's error for invalid parameters.

        Whatever comes of it can be sent: it is Unicode, and not longer than the budget.
        """
        try:
            return sendable(await self._called(name, arguments, context))
        except MCPError as error:
            raise MCPError(error.error.code, said(error.error.message)) from error
        except UnexpectedToolError:
            raise
        except ToolError as error:
            raise ToolError(said(str(error))) from error

    async def _called(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> Result:
        tool = self._tool_manager.get_tool(name)
        if tool is None and name in self._elsewhere:
            raise MCPError(INVALID_PARAMS, f"{name} is offered only with --tools {self._elsewhere[name]}")
        if tool is None:
            known = [each.name for each in self._tool_manager.list_tools()]
            raise MCPError(INVALID_PARAMS, f"there is no tool {name!r}{_nearest(name, known)}")
        parameters = tuple(tool.parameters.get("properties", {}))
        unknown = [key for key in arguments if key not in parameters]
        if unknown:
            raise MCPError(INVALID_PARAMS, _unknown(name, unknown[0], parameters))
        # Models write null for what they leave out.
        given = {
            key: value if key in EXACT or not isinstance(value, str) else legal_text(value)
            for key, value in arguments.items()
            if value is not None
        }
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
    meant = next((name for name in OTHER_NAMES.get(_plain(key), ()) if name in parameters), "")
    hint = f": did you mean {meant}?" if meant else _nearest(key, parameters)
    takes = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
    return f"{tool} has no parameter {key!r}{hint or ':'} {takes}"


def _plain(key: str) -> str:
    """Write ``nResults``, ``n-results`` and ``n_results`` in one way."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[-. ]", "_", key).lower()


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(_plain(name), list(known), 1, 0.5)
    return f": did you mean {close[0]}?" if close else ""


def _unfit(tool: str, error: ValidationError) -> str:
    faults = [f"{'.'.join(str(part) for part in fault['loc'])}: {_said(fault)}" for fault in error.errors()]
    return f"{tool}: {'; '.join(faults)}"


def _said(fault: Mapping[str, Any]) -> str:
    given = repr(fault["input"])
    shown = "" if fault["type"] == "missing" else f", not {given if len(given) <= 60 else given[:57] + '...'}"
    return f"{fault['msg'][:1].lower()}{fault['msg'][1:]}{shown}"
