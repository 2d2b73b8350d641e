"""``castle mcp``: how an agent gets the palace as tools, and which tools those are."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from castle.cli.common import AsJson
from castle.cli.output import note, say, say_json, say_table
from castle.errors import UsageError


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(mcp)


def mcp(
    context: typer.Context,
    client: Annotated[
        str, typer.Option("--client", help="claude, codex, cursor, vscode, gemini-cli or generic.")
    ] = "claude",
    list_tools: Annotated[
        bool, typer.Option("--list-tools", help="List the tools that the server offers.")
    ] = False,
    tools: Annotated[
        str, typer.Option("--tools", help="The set to list: core, standard, memory or all.", metavar="SET")
    ] = "all",
    as_json: AsJson = False,
) -> None:
    """Print the line that gives an agent this palace as tools; changes nothing.

    For Claude Code it is a command, for the others what goes into their settings: `castle share --with CLIENT
    --write` puts it there, `castle connect CLIENT` adds the hooks.
    """
    if list_tools:
        _list(tools, as_json)
        return
    from castle.clients.program import program
    from castle.clients.servers import PROGRAM, Server, snippet
    from castle.clients.table import client as client_named

    known = client_named(client)
    palace = context.find_root().obj
    called = program(PROGRAM, graphical=known.graphical, env=os.environ)
    server = Server(called.command, str(palace.expanduser().absolute()) if palace is not None else "")
    if as_json:
        say_json({"client": known.name, "command": server.command, "args": server.args})
    else:
        say(snippet(known, server))
    if called.why:
        note(f"it calls {called.command}: {called.why}")


def _list(tier: str, as_json: bool) -> None:
    from castle.mcp.server import described
    from castle.mcp.tools import Tools
    from castle.mcp.tools.base import TIERS

    chosen = next((one for one in TIERS if one == tier), None)
    if chosen is None:
        raise UsageError(f"--tools {tier!r} is none of {', '.join(TIERS)}")
    server = Tools()
    rows = [
        {
            "name": tool.name,
            "set": offer.tier,
            "kind": offer.kind,
            "idempotent": offer.idempotent,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        for tool, (_, offer) in zip(described(server, chosen), server.all(chosen), strict=True)
    ]
    if as_json:
        say_json(rows)
        return
    say_table(
        ("tool", "set", "kind", "again", "what it does"),
        [
            (
                row["name"],
                row["set"],
                row["kind"],
                "same" if row["idempotent"] else "more",
                _first(str(row["description"])),
            )
            for row in rows
        ],
    )
    note(f"{len(rows)} tools; `castle mcp` prints how to set them up")


def _first(text: str) -> str:
    """Return the first sentence."""
    head, stop, _ = text.partition(". ")
    return head + stop.rstrip()
