"""``castle compress``: AAAK lines and closets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castle.cli.common import AsJson, Wing, castle, path_argument
from castle.cli.output import PARTIAL, counted, note, plain, progress, say_json, say_table


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command()(compress)


def compress(
    context: typer.Context,
    wing: Wing = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it comes to, write nothing.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="JSON: codes of names (entities), and names to pass over (skip_names).",
            metavar="<path>",
            parser=path_argument,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write AAAK lines and closets for what has changed: pointers at drawers, which stay as they are.

    AAAK is lossy. Tokens are word pieces. Exit code 3 when something changed meanwhile.
    """
    with castle(context) as service, progress() as line:
        done = service.compress(wing, config=config, dry_run=dry_run, progress=line)
    if as_json:
        values = plain(done)
        assert isinstance(values, dict)
        say_json({**values, "ratio": round(done.ratio, 2)})
    else:
        say_table(
            ("sources", "built", "unchanged", "drawers", "closets", "lines", "tokens", "in AAAK", "ratio"),
            [
                (
                    done.sources,
                    done.built,
                    done.unchanged,
                    done.drawers,
                    done.closets,
                    done.lines,
                    done.original_tokens,
                    done.tokens,
                    f"{done.ratio:.1f}",
                )
            ],
        )
        if dry_run:
            note("nothing was written")
    if done.left:
        note(f"{counted(done.left, 'source')} changed meanwhile: run the command again")
    return PARTIAL if done.left else 0
