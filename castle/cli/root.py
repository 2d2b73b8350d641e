"""The command line before any command is on it: its name, its help, and the options that hold for all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

_HELP = "A local-first, verbatim memory: file directories and conversations, find the exact words again."


def new_app(cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Return a command line without commands, whose group is of the class ``cls``."""
    app = typer.Typer(
        cls=cls,
        name="castle",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(root)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from castle import __version__

        typer.echo(f"Cognitive Castle {__version__}")
        raise typer.Exit


def root(
    context: typer.Context,
    palace: Annotated[
        Path | None,
        typer.Option("--palace", help="Directory of the palace.", metavar="PATH", readable=False),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Remember what holds for every command."""
    context.obj = palace
