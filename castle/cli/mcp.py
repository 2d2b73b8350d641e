"""``castle mcp``: how an agent gets the palace as tools."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from castle.cli.common import AsJson
from castle.cli.output import note, say, say_json, say_table
from castle.errors import UsageError

CLIENTS = ("claude-code", "codex", "json")


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(mcp)


def mcp(
    context: typer.Context,
    client: Annotated[
        str, typer.Option("--client", help="claude-code, codex, or json for what most others read.")
    ] = "claude-code",
    list_tools: Annotated[
        bool, typer.Option("--list-tools", help="List the tools that the server offers.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the line that gives an agent this palace as tools; changes nothing.

    For codex it is what goes into ~/.codex/config.toml, for json the entry of a file of MCP servers.
    """
    if list_tools:
        _list(as_json)
        return
    if client not in CLIENTS:
        raise UsageError(f"client {client!r} is none of {', '.join(CLIENTS)}")
    palace = context.find_root().obj
    arguments = ["--palace", str(palace.expanduser().absolute())] if palace is not None else []
    command = _command()
    if as_json:
        say_json({"client": client, "command": command, "args": arguments})
    elif client == "claude-code":
        say(shlex.join(["claude", "mcp", "add", "castle", "--", command, *arguments]))
    elif client == "codex":
        # JSON strings and lists of them are TOML, too.
        say(f"[mcp_servers.castle]\ncommand = {json.dumps(command)}")
        if arguments:
            say(f"args = {json.dumps(arguments)}")
    else:
        say_json({"mcpServers": {"castle": {"command": command, "args": arguments}}})


def _command() -> str:
    """Return castle-mcp as the host has to call it: by its path when it stands beside this program."""
    beside = Path(sys.argv[0]).absolute().with_name("castle-mcp")
    return str(beside) if beside.is_file() else "castle-mcp"


def _list(as_json: bool) -> None:
    from castle.mcp.server import described
    from castle.mcp.tools import Tools

    tools = described(Tools(), "all")
    if as_json:
        say_json([{"name": tool.name, "description": tool.description} for tool in tools])
        return
    say_table(("tool", "what it does"), [(tool.name, tool.description) for tool in tools])
    note(f"{len(tools)} tools; `castle mcp` prints how to set them up")
