"""``castle check-env``: what a project runs on, and what is out of date because of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import counted, note, say, say_json, say_table

if TYPE_CHECKING:
    from castle.service.environment import CheckedEnvironment


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command("check-env")(check_env)


def check_env(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="The project's directory.", parser=path_argument, metavar="DIR")
    ] = Path(),
    wing: Annotated[
        str | None, typer.Option("--wing", help="The wing in the place of the directory's own.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what is believed of a project against its manifests, lock files and tools.

    What has become out of date expires: it stays known, with the reason, and is not recalled any more.
    """
    with castle(context) as service:
        found = service.check_env(directory, wing=wing, dry_run=dry_run)
    for line in found.notes:
        note(line)
    if as_json:
        say_json(found)
    else:
        _say(found)


def _say(found: CheckedEnvironment) -> None:
    rows = [
        *((name, "changed") for name in found.changed),
        *((name, "new") for name in found.added),
        *((name, "gone") for name in found.removed),
    ]
    if rows:
        say_table(("field", "since the last check"), rows)
    else:
        say("nothing has changed since the last check")
    if found.entries:
        say()
        say_table(
            ("id", "kind", "condition", "what was done", "reason"),
            [
                (
                    entry.id,
                    entry.kind,
                    entry.result.replace("_", " "),
                    _done(entry.result, found),
                    entry.reason,
                )
                for entry in found.entries
            ],
        )
    note(f"{counted(found.checked, 'condition')} of wing {found.wing} checked in {found.project}")


def _done(result: str, found: CheckedEnvironment) -> str:
    if result != "met":
        return "nothing"
    return "would expire" if found.dry_run else "expired"
