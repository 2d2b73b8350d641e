"""``castle eval``: how well the palace finds its own drawers again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from castle.cli.common import AsJson, Wing, castle
from castle.cli.output import PARTIAL, counted, note, progress, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.config.settings import SearchMode
    from castle.evaluation import Past
    from castle.service.evaluating import Evaluated

_SHOWN = 5


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command("eval")(evaluate)


def evaluate(
    context: typer.Context,
    probes: Annotated[
        int, typer.Option("--probes", help="Questions with an answer in the palace.", min=1, max=1000)
    ] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws other questions.")] = 42,
    wing: Wing = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="Stages of the searches: fast, standard, boosted or max."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show earlier evaluations instead of making one.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Measure how well the palace finds its own drawers again; changes none.

    Half of the questions are sentences of drawers without their rarest words, half are some less common words
    of one. R@1 and R@5 say how often the drawer came first or among five; false confidence, how often a topic
    that the palace does not hold was answered as if it did. The numbers are kept, and tell whether a change
    of settings helps here; questions of people are harder. Exit code 3 when a search could not do all it
    should.
    """
    if history:
        return _say_history(context, as_json)
    with castle(context) as service, progress() as line:
        done = service.eval(
            probes=probes, seed=seed, wing=wing, mode=cast("SearchMode | None", mode), progress=line
        )
    if as_json:
        say_json(done)
    else:
        _say(done)
    reasons = [*done.found.degraded, *([done.unkept] if done.unkept else [])]
    for reason in reasons:
        note(reason)
    return PARTIAL if reasons else 0


def _say(done: Evaluated) -> None:
    found, before = done.found, done.before
    rows: list[tuple[object, ...]] = [
        (part.kind, part.probes, _share(part.r1), _share(part.r5), _share(part.unsure))
        for part in found.parts
    ]
    rows.append(("all", found.probes, _share(found.r1), _share(found.r5), _share(found.unsure)))
    say_table(("probes", "asked", "R@1", "R@5", "unsure"), rows)
    say(f"false confidence {_share(found.false_confidence)} of {counted(found.absent, 'question')}")
    if before is not None:
        note(
            f"before, {to_iso(before.at)}: R@1 {_share(before.r1)}, R@5 {_share(before.r5)}, "
            f"false confidence {_share(before.false_confidence)}, {counted(before.drawers, 'drawer')}"
        )
    for missed in found.missed[:_SHOWN]:
        note(f"not found: {missed.drawer} by: {missed.question}")
    if found.missed:
        note(f'`castle why "QUESTION" --drawer {found.missed[0].drawer}` says what became of one')


def _say_history(context: typer.Context, as_json: bool) -> int:
    with castle(context) as service:
        entries = service.eval_history()
    if as_json:
        say_json(entries)
    elif entries:
        say_table(
            ("at", "version", "mode", "seed", "wing", "drawers", "probes", "R@1", "R@5", "false confidence"),
            [_row(entry) for entry in entries],
        )
    else:
        note("nothing was measured yet: `castle eval` does")
    return 0


def _row(entry: Past) -> tuple[object, ...]:
    return (
        to_iso(entry.at), entry.version, entry.mode, entry.seed, entry.wing or "", entry.drawers,
        entry.probes, _share(entry.r1), _share(entry.r5), _share(entry.false_confidence),
    )  # fmt: skip


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"
