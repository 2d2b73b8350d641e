"""``castle backup`` and ``repair-status``: a copy of the palace in one file, and how every part stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import PARTIAL, counted, note, progress, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.store.restoring import Restored


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(backup)
    app.command("repair-status")(repair_status)


def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The file to write.", metavar="FILE", parser=path_argument)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole palace into one file, as it is at this moment, while others may write.

    It holds the ledger with everything that was filed, secrets included, the events of hooks that wait, and
    identity.txt. Indexes are not in it: they are built again from the ledger, without a model. The file is
    read back and proven. `castle restore --from FILE` brings it back.
    """
    with castle(context) as service, progress() as line:
        made = service.backup(file, force=force, progress=line)
    if as_json:
        say_json(made)
        return
    say(made.path)
    kept = f"{counted(made.drawers, 'drawer')} of {counted(made.sources, 'source')}"
    note(f"{kept}, {made.bytes:,} bytes, proven; indexes are not in it and are built again from the ledger")
    note("it holds the exact text of everything, secrets included: keep it where only you can read it")


def put_back(context: typer.Context, file: Path, yes: bool, as_json: bool) -> int:
    """Restore a backup and bring the indexes up to date; return the exit code."""
    with castle(context) as service, progress() as line:
        found = service.restore_backup(file, yes=yes, progress=line)
        troubles = service.catch_up(line)
    if as_json:
        say_json(found)
    else:
        _say_restored(found)
    if found.unpurged:
        note(
            f"{counted(found.unpurged, 'drawer')} that had been purged since then are back: purge them again"
        )
    for trouble in troubles:
        note(f"not yet up to date: {trouble}")
    return PARTIAL if troubles else 0


def _say_restored(found: Restored) -> None:
    say(found.palace)
    kept = f"{counted(found.drawers, 'drawer')} of {counted(found.sources, 'source')}"
    note(f"{kept}, as of {to_iso(found.created_at)[:19]}Z")
    if found.aside:
        note(f"the palace that was there is now {found.aside}")
    if found.removed:
        note(f"removed, from an earlier restore: {found.removed}")
    if found.events:
        note(f"{counted(found.events, 'event')} of hooks wait: `castle sweep` files their sessions")
    if found.identity == "kept":
        note("identity.txt was left as it is; the one in the backup is another")


def repair_status(context: typer.Context, as_json: AsJson = False) -> int:
    """Show how every part of the palace stands: ok, failed, or not checked and why; changes nothing.

    Goes by counts and SQLite's own checks; `castle verify` proves every row. Exit code 1 when something that
    the palace promises is not in force.
    """
    with castle(context) as service, progress() as line:
        findings = service.repair_status(line)
    if as_json:
        say_json(findings)
    else:
        say_table(("part", "result", "detail"), [(f.check, f.status, f.detail) for f in findings])
    return 1 if any(finding.status == "failed" for finding in findings) else 0
