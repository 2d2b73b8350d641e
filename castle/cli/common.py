"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.errors import UsageError
from castle.records import KINDS

if TYPE_CHECKING:
    from castle.service import Castle

MOST = 1_000_000_000
"""The largest number that an option takes; databases know no endless ones."""


def path_argument(text: str) -> Path:
    """Read a path; an empty one is a variable that is not set, not the directory we are in."""
    if not text:
        raise UsageError('the path is empty: name one ("." is the directory you are in)')
    return Path(text)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wing = Annotated[str | None, typer.Option("--wing", help="Only this wing.")]
Room = Annotated[str | None, typer.Option("--room", help="Only this room.")]
Source = Annotated[str | None, typer.Option("--source", help="Only this source: a path or the end of one.")]
Kind = Annotated[
    list[str] | None,
    typer.Option("--kind", help=f"Only this kind of drawers (repeat it for several): {', '.join(KINDS)}."),
]
History = Annotated[bool, typer.Option("--history", help="Superseded drawers too.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="What was current at this ISO date or time.", metavar="TIME")
]


def castle(context: typer.Context) -> Castle:
    """Return the service for the palace that the command line names."""
    from castle.service import Castle

    return Castle(context.find_root().obj)
