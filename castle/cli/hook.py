"""``castle hook run``: what ``castle-hook`` does, for hosts that can only call ``castle``."""

from __future__ import annotations

from typing import Annotated

import typer

from castle.cli.output import write

app = typer.Typer(help="Notes of agents' hooks.", no_args_is_help=True)


@app.callback()
def hook() -> None:
    """Note what happens in an agent's sessions."""


@app.command()
def run(
    context: typer.Context,
    hook: Annotated[
        str,
        typer.Option(
            "--hook",
            help="session-start, user-prompt-submit, stop, precompact, session-end, post-tool-use "
            "or subagent-stop.",
        ),
    ] = "",
    harness: Annotated[str, typer.Option("--harness", help="claude-code or codex.")] = "",
) -> None:
    """Note one event of an agent's session and have it filed; castle-hook does the same and starts faster.

    Reads the host's JSON on stdin, prints what the host's schema has for the event, or nothing, and always
    exits with 0, because hosts take other codes for a verdict.
    """
    from castle import hooks

    palace = context.find_root().obj
    hooks.run(hook, harness, str(palace) if palace is not None else None, write=write)
