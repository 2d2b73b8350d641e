"""``castle backup``, ``export``, ``import`` and ``repair-status``: the palace in files, and how it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import PARTIAL, counted, note, progress, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.keep.importing import Imported
    from castle.store.restoring import Restored

NAMED = 5
"""Drawers that a note names by their ids."""


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(backup)
    app.command()(export)
    app.command("import")(import_)
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
        back = "is back: purge it" if len(found.unpurged) == 1 else "are back: purge them"
        named = ", ".join(found.unpurged[:NAMED]) + (" ..." if len(found.unpurged) > NAMED else "")
        note(
            f"{counted(len(found.unpurged), 'drawer')} that had been purged since then {back} again with "
            f"`castle purge`: {named}"
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


def export(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(help="The directory to make.", metavar="DIR", parser=path_argument)
    ],
    format: Annotated[
        str, typer.Option("--format", help="markdown, to read; or jsonl, all of it, for `castle import`.")
    ] = "markdown",
    wing: Annotated[str | None, typer.Option("--wing", help="Only this wing.")] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Superseded drawers too; jsonl has them always.")
    ] = False,
    include_secrets: Annotated[
        bool, typer.Option("--include-secrets", help="Exact text, with jsonl; it is masked without.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the palace into a new directory, as Markdown to read or as JSON lines that lose nothing."""
    with castle(context) as service, progress() as line:
        found = service.export(
            directory,
            format=format,
            wing=wing,
            history=history,
            include_secrets=include_secrets,
            progress=line,
        )
    if as_json:
        say_json(found)
    else:
        say(found.path)
        what = f"{counted(found.drawers, 'drawer')} of {counted(found.sources, 'source')}"
        note(f"{what} in {counted(found.files, 'file')}, {found.bytes:,} bytes")
    if found.exact:
        note("secrets are in it as they are: keep it where only you can read it")
    elif found.masked:
        note(
            f"secrets are masked in {counted(found.masked, 'drawer')}; jsonl has them with --include-secrets"
        )
    if found.purged:
        note(f"{counted(found.purged, 'purged drawer')} left out")


def import_(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            help="What `castle export --format jsonl` made.", metavar="FILE|DIR", parser=path_argument
        ),
    ],
    as_json: AsJson = False,
) -> int:
    """Merge an export into this palace or a new one; what is here already is known and stays as it is.

    Exit code 3 when something was left as it is here because it differs, or indexes are not up to date.
    """
    with castle(context) as service, progress() as line:
        found = service.import_from(path, progress=line)
        troubles = service.catch_up(line)
    if as_json:
        say_json(found)
    else:
        _say_imported(found)
    for trouble in troubles:
        note(f"not yet up to date: {trouble}")
    return PARTIAL if found.conflict_count or troubles else 0


def _say_imported(found: Imported) -> None:
    rows = [("sources, new", found.sources), ("sources that went on", found.grown)]
    rows += [("sources, known", found.known), ("drawers, new", found.drawers)]
    rows += [(f"{name.replace('_', ' ')}, new", count) for name, count in sorted(found.rows.items())]
    say_table(("what", "count"), rows)
    if found.masked:
        note(f"{counted(found.masked, 'drawer')} are masked copies, not exact: {', '.join(found.masked_ids)}")
    for conflict in found.conflicts:
        note(f"left as it is here: {conflict}")
    if found.conflict_count > len(found.conflicts):
        note(f"and {found.conflict_count - len(found.conflicts):,} more")


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
