"""``castle reindex``: make the vectors of a palace anew, with its embedder or another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle, path_argument
from castle.cli.hits import second
from castle.cli.output import PARTIAL, counted, note, progress, say_json
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.service.reindexing import ReindexReport
    from castle.store.reindex import ReindexPlan


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(reindex)


def reindex(
    context: typer.Context,
    more: Annotated[
        list[Path] | None,
        typer.Argument(help="Further directories after --sources.", metavar="[DIR]...", parser=path_argument),
    ] = None,
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--sources",
            help="Mine these again afterwards; nothing needs it.",
            metavar="DIR",
            parser=path_argument,
        ),
    ] = None,
    embedder: Annotated[
        str | None, typer.Option("--embedder", help="Another embedder for the palace.", metavar="NAME")
    ] = None,
    embedder_dim: Annotated[
        int | None,
        typer.Option("--embedder-dim", help="The length of its vectors, to be checked.", metavar="N", min=1),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make the vectors of all drawers anew from what is filed, with the palace's embedder or another.

    Searches and filing go on meanwhile; searches use the vectors there were until all are made. Interrupted,
    the same command goes on. Exit code 3 when something could not be mined.
    """
    if more and not sources:
        raise UsageError(f"{more[0]} is no option: directories to mine again come after --sources")
    places = [*(sources or ()), *(more or ())]
    with castle(context) as service:
        plan = service.plan_reindex(embedder=embedder, embedder_dim=embedder_dim, sources=places)
        _say_plan(plan, len(places))
        if not yes and not _agrees():
            note("nothing was changed")
            return 1
        with progress() as line:
            report = service.reindex(
                embedder=embedder, embedder_dim=embedder_dim, sources=places, progress=line
            )
    if as_json:
        say_json(report)
    _say_report(report)
    if any(mined.interrupted for mined in report.mined):
        note("interrupted; the vectors are made, the same command mines what is left")
        return 130
    return PARTIAL if any(mined.incomplete for mined in report.mined) else 0


def _say_plan(plan: ReindexPlan, sources: int) -> None:
    same = plan.before.identity == plan.after.identity
    what = f"{plan.after.name} ({plan.after.dim})"
    note(
        f"{counted(plan.drawers, 'drawer')} get new vectors of {what}"
        + ("" if same else f" in the place of {plan.before.name} ({plan.before.dim})")
        + (f"; {plan.done:,} are done" if plan.done else "")
        + f"; about {_duration(plan.seconds)}"
    )
    if sources:
        note(f"then {counted(sources, 'source')} will be mined again")


def _say_report(report: ReindexReport) -> None:
    done = report.done
    note(f"{counted(done.drawers, 'drawer')}: vectors of {done.after.name}, {done.seconds:.1f} s")
    if done.behind:
        note(f"{counted(done.behind, 'drawer')} filed meanwhile get theirs with the next search")
    note(
        "the vectors before stay for searches that are at work; "
        f"the next filing after {second(done.kept_until)} deletes them"
    )
    for mined in report.mined:
        note(f"mined: {counted(mined.drawers_new, 'drawer')} new")
    for text in report.notes:
        note(text)


def _agrees() -> bool:
    """Ask; an empty line and the end of the input are no."""
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _duration(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"
