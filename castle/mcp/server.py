"""Putting the server together: its name, what it tells a host at the start, and its tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

from castle import __version__
from castle.mcp.instructions import instructions
from castle.mcp.strict import StrictServer
from castle.mcp.tools import Tools
from castle.mcp.tools.base import Tier


def build(palace: str | Tools | None = None, tier: Tier = "standard") -> StrictServer:
    """Return a server for a palace or its tools, None for the one that the settings name. Opens nothing."""
    tools = palace if isinstance(palace, Tools) else Tools(palace)
    offered = {_name(method) for method, _ in tools.all(tier)}
    return StrictServer(
        "cognitive-castle",
        tools=partial(described, tools, tier),
        elsewhere={_name(m): offer.tier for m, offer in tools.all() if _name(m) not in offered},
        version=__version__,
        instructions=instructions(offered),
        log_level="WARNING",
    )


def described(tools: Tools, tier: Tier) -> Sequence[Tool]:
    """Return the tools of a set with their schemas, as short as they can be."""
    found = []
    for method, offer in tools.all(tier):
        hints = ToolAnnotations(
            read_only_hint=offer.kind == "reads",
            destructive_hint=offer.kind == "changes",
            idempotent_hint=offer.idempotent,
            open_world_hint=False,
        )
        tool = Tool.from_function(method, name=_name(method), annotations=hints)
        tool.description = " ".join(tool.description.split())
        tool.parameters = {**_bare(tool.parameters), "additionalProperties": False}
        tool.fn_metadata.output_schema = _bare(tool.fn_metadata.output_schema)
        found.append(tool)
    return found


def _name(method: Callable[..., Any]) -> str:
    name = method.__name__
    return name if name.startswith("memory_") else f"castle_{name}"


def _bare(schema: Any) -> Any:
    """Leave out what a schema says twice: titles, the docstrings of models, defaults that are empty."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    docstring = "properties" in schema
    return {
        key: {name: _bare(part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else _bare(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
        and not (docstring and key == "description")
        and not (key == "default" and value in ("", [], 0, None))
    }
