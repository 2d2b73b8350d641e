"""The commands, and the options that hold for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castle import __version__
from castle.cli import (
    backup,
    check,
    compress,
    config,
    diary,
    doctor,
    entities,
    filing,
    finding,
    hook,
    instructions,
    keeping,
    kg,
    mcp,
    notes,
    novelty,
    purge,
    receipts,
    reindex,
    searching,
    serve,
    share,
    split,
    tunnels,
    understand,
    wakeup,
    wing,
)

app = typer.Typer(
    name="castle",
    help="A local-first, verbatim memory: file directories and conversations, find the exact words again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"Cognitive Castle {__version__}")
        raise typer.Exit


@app.callback()
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


filing.add_to(app)
notes.add_to(app)
searching.add_to(app)
finding.add_to(app)
receipts.add_to(app)
wakeup.add_to(app)
novelty.add_to(app)
understand.add_to(app)
keeping.add_to(app)
purge.add_to(app)
reindex.add_to(app)
backup.add_to(app)
doctor.add_to(app)
check.add_to(app)
compress.add_to(app)
split.add_to(app)
mcp.add_to(app)
serve.add_to(app)
share.add_to(app)
instructions.add_to(app)
app.add_typer(diary.app, name="diary")
app.add_typer(tunnels.app, name="tunnels")
app.add_typer(kg.app, name="kg")
app.add_typer(entities.app, name="entities")
app.add_typer(wing.app, name="wing")
app.add_typer(hook.app, name="hook")
app.add_typer(config.app, name="config")
