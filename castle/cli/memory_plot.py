"""``castle memory plot``: pictures of the mind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import say, say_json


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command("plot")(plot)


def plot(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="Where the files go; made if need be.", parser=path_argument, metavar="DIR")
    ],
    as_json: AsJson = False,
) -> None:
    """Draw attention decay, retention scores with their threshold, and associations, as PNG and SVG.

    Needs matplotlib: `pip install 'cognitive-castle[research]'`.
    """
    with castle(context) as service:
        written = service.memory_plot(directory)
    if as_json:
        say_json([str(path) for path in written])
        return
    for path in written:
        say(str(path))
