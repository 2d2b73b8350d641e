"""``castle serve``: the palace as tools over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from castle.cli.output import note
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.mcp.tools.base import Tier


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(serve)


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="IP address to listen at.", metavar="IP")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", help="Port to listen at; 0 takes a free one.", min=0, max=65535)
    ] = 8765,
    tools: Annotated[
        str, typer.Option("--tools", help="core, standard, memory or all: which tools are offered.")
    ] = "standard",
    path: Annotated[str, typer.Option("--path", help="Path of the protocol.")] = "/mcp",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", help="Name that clients may call this server by (repeat it).", metavar="NAME"
        ),
    ] = None,
    ingest_port: Annotated[
        int | None,
        typer.Option(
            "--ingest-port",
            help="Take events of hook scripts at this port of 127.0.0.1, too; they expect 8766.",
            envvar="CELL_MEM_INGEST_PORT",
            min=1,
            max=65535,
        ),
    ] = None,
) -> int:
    """Serve the palace to agents over HTTP (streamable, Model Context Protocol) until a signal ends it.

    Only this machine can reach it. For any other address it asks for a bearer token, the setting serve_token.
    """
    from castle import config, mcp

    if tools not in mcp.TIERS:
        raise UsageError(f"--tools {tools!r} is none of {', '.join(mcp.TIERS)}")
    palace = context.find_root().obj
    token = config.load({"palace_path": palace}).serve_token
    from castle.mcp import http

    address = http.Address(host, port, path, tuple(allow_host or ()), ingest_port)
    return http.serve(None if palace is None else str(palace), cast("Tier", tools), address, token, note)
