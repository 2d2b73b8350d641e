"""``castle verify``, ``forget`` and ``restore``: looking after the palace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.backup import put_back
from castle.cli.common import AsJson, castle, path_argument
from castle.cli.output import PARTIAL, counted, note, progress, say_json, say_table
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.novelty import NoveltyReport
    from castle.records import Finding

Id = Annotated[str | None, typer.Argument(help="A drawer's id or its beginning.")]
WholeSource = Annotated[str | None, typer.Option("--source", help="A whole source: its path.")]
WholeWing = Annotated[str | None, typer.Option("--wing", help="A whole wing.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(verify)
    app.command()(repair)
    app.command()(forget)
    app.command()(restore)


def verify(context: typer.Context, as_json: AsJson = False) -> int:
    """Prove that nothing is lost: every text against its hash, every index against the ledger.

    Exit code 1 when a check failed, 3 when one could not be made.
    """
    with castle(context) as service, progress() as line:
        findings = service.verify(line)
    return _say_findings(findings, as_json)


def repair(
    context: typer.Context,
    backfill_novelty: Annotated[
        bool,
        typer.Option("--backfill-novelty", help="Only score the novelty of the drawers that have none yet."),
    ] = False,
    clean_locks: Annotated[
        bool, typer.Option("--clean-locks", help="Does nothing: a lock ends with the process that has it.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Build damaged or incomplete indexes again from the ledger, then verify."""
    if clean_locks:
        note("no lock to clean: locks are the kernel's and end with their process; *.lock files mean nothing")
        if as_json:
            say_json({"cleaned": 0})
        return 0
    with castle(context) as service, progress() as line:
        if backfill_novelty:
            return _say_backfill(service.backfill_novelty(line), as_json)
        findings = service.repair(line)
    return _say_findings(findings, as_json)


def forget(
    context: typer.Context,
    id: Id = None,
    source: WholeSource = None,
    wing: WholeWing = None,
    as_json: AsJson = False,
) -> None:
    """Put a drawer, a source or a wing out of sight; `castle restore` brings it back."""
    with castle(context) as service:
        count = service.forget(id, source=source, wing=wing)
    _tell("forgotten", count, as_json)


def restore(
    context: typer.Context,
    id: Id = None,
    source: WholeSource = None,
    wing: WholeWing = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="A whole palace: what `castle backup` made.", parser=path_argument),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --from: move the palace that is there aside.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Bring back what was forgotten; with --from, a whole palace from its backup."""
    if from_ is not None:
        if (id, source, wing) != (None, None, None):
            raise UsageError("--from brings back a whole palace: leave the id, --source and --wing out")
        return put_back(context, from_, yes, as_json)
    with castle(context) as service:
        count = service.restore(id, source=source, wing=wing)
    _tell("restored", count, as_json)
    return 0


def _say_backfill(report: NoveltyReport, as_json: bool) -> int:
    if as_json:
        say_json(report)
    else:
        note(f"{counted(report.scored, 'drawer')} scored, {report.drawers - report.pending:,} in all")
    if report.pending:
        note(f"{counted(report.pending, 'drawer')} without a score: {report.reason}")
    return PARTIAL if report.pending else 0


def _tell(verb: str, count: int, as_json: bool) -> None:
    if as_json:
        say_json({verb: count})
    else:
        note(f"{counted(count, 'drawer')} {verb}")


def _say_findings(findings: Sequence[Finding], as_json: bool) -> int:
    if as_json:
        say_json(findings)
    else:
        say_table(("check", "result", "detail"), [(f.check, f.status, f.detail) for f in findings])
    states = {finding.status for finding in findings}
    return 1 if "failed" in states else PARTIAL if "not checked" in states else 0
