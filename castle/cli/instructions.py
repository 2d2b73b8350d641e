"""``castle instructions``: what an agent is told to do for a task."""

from __future__ import annotations

from typing import Annotated

import typer

from castle.cli.common import AsJson
from castle.cli.output import say, say_json


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(instructions)


def instructions(
    name: Annotated[str, typer.Argument(help="init, search, mine, status, doctor or help.")] = "help",
    as_json: AsJson = False,
) -> None:
    """Print what an agent is to do for a task, as Markdown."""
    from castle.instructions import text

    found = text(name)
    if as_json:
        say_json({"name": name, "text": found})
    else:
        say(found.rstrip("\n"))
