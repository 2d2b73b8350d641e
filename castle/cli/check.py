"""``castle check``: what is doubtful in the knowledge graph."""

from __future__ import annotations

from typing import Annotated

import typer

from castle.cli.common import AsJson, castle
from castle.cli.output import note, say_json, say_table

_MOST_DAYS = 1_000_000


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command()(check)


def check(
    context: typer.Context,
    stale_after: Annotated[
        int,
        typer.Option(
            "--stale-after", help="Days without anybody saying so (0: never stale).", min=0, max=_MOST_DAYS
        ),
    ] = 365,
    as_json: AsJson = False,
) -> int:
    """Report contradicting facts, stale facts and similar names in the graph; changes nothing.

    Exit code 1 when there is something to report.
    """
    with castle(context) as service:
        issues = service.check(stale_after_days=stale_after)
    if as_json:
        say_json(issues)
    elif issues:
        say_table(("kind", "detail"), [(issue.kind, issue.detail) for issue in issues])
    else:
        note("nothing doubtful in the graph")
    return 1 if issues else 0
