"""``castle split``: cutting files that hold several sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import PARTIAL, counted, note, plain, say, say_json


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command()(split)


def split(
    context: typer.Context,
    directory: Annotated[
        Path,
        typer.Argument(help="Where the .txt files are, or one file.", metavar="DIR", parser=path_argument),
    ],
    output_dir: Annotated[
        Path | None,
        typer.Option(
            "--output-dir",
            help="Write the pieces here; the files stay as they are.",
            metavar="DIR",
            parser=path_argument,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written, write nothing.")
    ] = False,
    min_sessions: Annotated[
        int, typer.Option("--min-sessions", help="Leave files with fewer sessions.", min=2)
    ] = 2,
    as_json: AsJson = False,
) -> int:
    """Cut text files that hold several terminal sessions into one file each; no byte is lost.

    Without --output-dir the pieces are written beside the file, which is kept under the name *.mega_backup.
    Exit code 3 when a file could not be read.
    """
    with castle(context) as service:
        report = service.split(directory, output=output_dir, dry_run=dry_run, min_sessions=min_sessions)
    if as_json:
        say_json(_as_text(plain(report)))
    else:
        for done in report.split:
            for piece in done.pieces:
                size, lines = piece.end - piece.start, piece.lines
                say(f"{piece.path}\t{counted(size, 'byte')}\t{counted(lines, 'line')}")
            verb = "would be kept" if dry_run else "is kept"
            note(f"{done.path} {verb} byte for byte as {done.backup or done.path}")
        for path in report.single:
            note(f"{path}: fewer than {min_sessions} sessions, left as it is")
        for left in report.skipped:
            note(f"{left.path}: {left.reason}{f', {left.detail}' if left.detail else ''}")
    return PARTIAL if report.skipped else 0


def _as_text(value: object) -> object:
    """Write the paths in a report as text."""
    if isinstance(value, dict):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value
