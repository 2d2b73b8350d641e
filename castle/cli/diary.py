"""``castle diary``: what agents write down for later."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import PARTIAL, note, progress, say, say_json
from castle.errors import UsageError

app = typer.Typer(help="Write, read and ingest diaries.", no_args_is_help=True)

Agent = Annotated[str, typer.Option("--agent", help="Whose diary, in any case of letters.")]


@app.command()
def write(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The entry; - reads it from standard input.")],
    agent: Agent,
    topic: Annotated[str, typer.Option("--topic", help="What it is about.")] = "general",
    wing: Annotated[str | None, typer.Option("--wing", help="The wing; by default wing_AGENT.")] = None,
    as_json: AsJson = False,
) -> None:
    """File an entry; entries are never changed."""
    entry_text = _standard_input() if text == "-" else text
    with castle(context) as service:
        entry = service.diary_write(agent, entry_text, topic=topic, wing=wing)
    if as_json:
        say_json(entry)
    else:
        note(f"entry {entry.id[:8]} filed in {entry.wing}")


@app.command()
def read(
    context: typer.Context,
    agent: Agent,
    last: Annotated[int, typer.Option("--last", "-n", help="How many at most.", min=1, max=1000)] = 10,
    wing: Annotated[str | None, typer.Option("--wing", help="Only this wing; else all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show an agent's last entries, newest first."""
    with castle(context) as service:
        found = service.diary_read(agent, last=last, wing=wing)
    if as_json:
        say_json(found)
        return
    for entry in found.entries:
        say(f"{entry.timestamp}  {entry.topic}  ({entry.wing}, {entry.id[:8]})")
        say(entry.content.rstrip("\n"))
        say()
    note(f"{len(found.entries):,} of {found.total:,} entries of {found.agent}")


@app.command()
def ingest(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="Where the day files are.", metavar="DIR", parser=path_argument)
    ],
    wing: Annotated[str, typer.Option("--wing", help="The wing they go to.")] = "diary",
    as_json: AsJson = False,
) -> int:
    """File the day files (YYYY-MM-DD*.md) of a directory; a changed one becomes a new revision.

    Exit code 3 when one could not be filed.
    """
    with castle(context) as service, progress() as line:
        report = service.diary_ingest(directory, wing=wing, progress=line)
    if as_json:
        say_json(report)
    else:
        say(
            f"{report.files:,} day files in {report.wing}: {report.new:,} new, {report.changed:,} changed, "
            f"{report.unchanged:,} unchanged"
        )
        for left in (*report.skipped, *report.ignored):
            note(f"{left.path}: {left.reason}{f', {left.detail}' if left.detail else ''}")
        for line_ in report.notes:
            note(line_)
    return PARTIAL if report.incomplete else 0


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8 (byte {error.start})") from error
