"""``castle info-score`` and ``castle prune-suggest``: what would be new, and what is not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import MOST, AsJson, Wing, castle
from castle.cli.output import PARTIAL, counted, note, say, say_json, say_table
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.novelty import InfoScore, Pruning

_SHOWN = 20
_EXCERPT = 80


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("info-score")(info_score)
    app.command("prune-suggest")(prune_suggest)


def info_score(
    context: typer.Context,
    text: Annotated[
        str | None, typer.Argument(help="What you would file; without it, standard input.", metavar="[TEXT]")
    ] = None,
    drawer: Annotated[
        str | None,
        typer.Option(
            "--drawer", help="A drawer instead, beside what was filed before it: its id or its beginning."
        ),
    ] = None,
    wing: Wing = None,
    top_k: Annotated[int, typer.Option("--top-k", help="How many neighbours to show.", min=1, max=100)] = 5,
    as_json: AsJson = False,
) -> int:
    """Say how new a text would be beside what is filed; files nothing.

    Novelty is 1 - the greatest cosine: low below 0.10, medium below 0.50, else high. It says nothing about
    truth. Exit code 3 when not everything could be compared with.
    """
    if text is None and drawer is None:
        text = _standard_input()
    with castle(context) as service:
        found = service.info_score(text, id=drawer, wing=wing, top_k=top_k)
    if as_json:
        say_json(found)
    else:
        _say_score(found)
    if found.behind:
        note(f"{counted(found.behind, 'change')} not indexed yet: `castle repair` catches up")
    return PARTIAL if found.behind else 0


def prune_suggest(
    context: typer.Context,
    wing: Wing = None,
    threshold: Annotated[
        float, typer.Option("--threshold", help="List drawers whose novelty is below this.", min=0, max=1)
    ] = 0.10,
    sample: Annotated[
        int,
        typer.Option("--sample", help="Look at this many, drawn at random; 0 is all.", min=0, max=MOST),
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="For the sample: the same one again.")] = 42,
    as_json: AsJson = False,
) -> int:
    """List drawers that add little to what was filed before them; changes nothing.

    Exit code 3 when some drawers have no score yet.
    """
    with castle(context) as service:
        found = service.prune_suggest(threshold=threshold, wing=wing, sample=sample, seed=seed)
    if as_json:
        say_json(found)
    else:
        _say_suggestions(found)
    if found.unscored:
        note(
            f"{found.unscored:,} of {counted(found.drawers, 'drawer')} have no score yet: "
            "`castle repair --backfill-novelty` makes them"
        )
    return PARTIAL if found.unscored else 0


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8 (byte {error.start})") from error


def _say_score(found: InfoScore) -> None:
    say(f"novelty {found.novelty:.3f}  {found.band}")
    if found.neighbours:
        rows = [(n.id, f"{n.cosine:.3f}", n.wing, n.room, _line(n.text)) for n in found.neighbours]
        say_table(("id", "cosine", "wing", "room", "text"), rows)
    else:
        note("there is nothing to compare it with")


def _say_suggestions(found: Pruning) -> None:
    if not found.suggestions:
        note(f"none of {counted(found.examined, 'drawer')} is below {found.threshold:g}")
        return
    shown = found.suggestions[:_SHOWN]
    rows = [(s.id, f"{s.novelty:.3f}", f"{s.wing} / {s.room}", s.nearest, _line(s.text)) for s in shown]
    say_table(("id", "novelty", "place", "much like", "text"), rows)
    note(
        f"{counted(len(found.suggestions), 'drawer')} of {found.examined:,} below {found.threshold:g}"
        + (f", {len(shown)} shown: --json lists them all" if len(shown) < len(found.suggestions) else "")
    )
    note("`castle forget ID` puts one out of sight, `castle restore ID` brings it back; nothing was changed")


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words[:_EXCERPT] + ("…" if len(words) > _EXCERPT else "")
