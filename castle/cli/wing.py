"""``castle wing``: the names of wings."""

from __future__ import annotations

from typing import Annotated

import typer

from castle.cli.common import AsJson, castle
from castle.cli.output import counted, note, say_json

app = typer.Typer(help="Rename wings.", no_args_is_help=True)


@app.callback()
def wings() -> None:
    """Rename wings."""


@app.command()
def rename(
    context: typer.Context,
    old: Annotated[str, typer.Argument(help="The wing's present name.")],
    new: Annotated[str, typer.Argument(help="The name it is to have.")],
    merge: Annotated[bool, typer.Option("--merge", help="Join it with a wing of that name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a wing another name; what is filed under the old name later goes there too."""
    with castle(context) as service:
        count = service.rename_wing(old, new, merge=merge)
    if as_json:
        say_json({"moved": count})
    else:
        note(f"{counted(count, 'drawer')} moved from {old} to {new}")
