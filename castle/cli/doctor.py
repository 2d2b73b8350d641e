"""``castle doctor`` and ``castle reveal``: what works, and what is sealed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle
from castle.cli.output import note, say, say_json, say_table
from castle.errors import ConfigError, RefusedError, UsageError

if TYPE_CHECKING:
    from castle.doctor import Examination
    from castle.service import Castle

_CONFIRM = 6


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(doctor)
    app.command()(reveal)


def doctor(
    context: typer.Context,
    online: Annotated[
        bool, typer.Option("--online", help="Ask a language model beyond this machine, too.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show what works and what does not, each line with the command that helps.

    Goes by counts and small trials; `castle verify` proves every row. Exit code 1 when a guarantee is not in
    force. What is not in use is said and does not count. Where the output is no terminal, each line reads
    `check: result detail -> what helps`.
    """
    service, trouble = _service(context)
    with service:
        found = service.doctor(online=online, trouble=trouble)
    if as_json:
        say_json(found)
    else:
        _say(found)
    return 0 if found.in_force else 1


def _service(context: typer.Context) -> tuple[Castle, str]:
    """Return the service; where the user's settings cannot be read, one by the defaults, and the reason."""
    try:
        return castle(context), ""
    except ConfigError as error:
        from castle.config import Settings
        from castle.config.load import surroundings
        from castle.service import Castle

        home = surroundings().home
        named = context.find_root().obj or os.environ.get("CASTLE_PALACE_PATH") or home / "palace"
        return Castle(settings=Settings(palace_path=Path(named).expanduser(), home=home)), str(error)


def _say(found: Examination) -> None:
    if sys.stdout.isatty():
        rows = [(line.check, line.status, line.detail, line.help) for line in found.lines]
        say_table(("check", "result", "detail", "what helps"), rows)
    else:
        for line in found.lines:
            say(f"{line.check}: {line.status} {line.detail}" + (f" -> {line.help}" if line.help else ""))
    failed = sum(line.status == "failed" for line in found.lines)
    note(
        f"not in force: {failed}; what helps stands behind each"
        if failed
        else "everything that is in use works"
    )


def reveal(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="A drawer's id or its beginning.")],
) -> None:
    """Show the exact text of a drawer, its sealed secrets included, to the person at this terminal.

    Refused unless input and output are a terminal; asks for the beginning of the id. The palace keeps a note
    of who saw which drawer, and when.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("reveal is for a person at a terminal: its input and output cannot be redirected")
    with castle(context) as service:
        found = service.find_sealed(id)
        kinds = ", ".join(found.kinds)
        note(f"drawer {found.id} holds {len(found.sealed)} sealed: {kinds}")
        note(f"type at least the first {_CONFIRM} characters of its id to go on: ")
        typed = sys.stdin.readline().strip().lower()
        if len(typed) < _CONFIRM or not found.id.startswith(typed):
            raise RefusedError("that is not the beginning of the id: nothing was revealed")
        service.note_reveal(found)
    say(found.text)
