"""``castle sue``: reviews of how chosen requirements can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from castle.cli.common import AsJson, castle
from castle.cli.output import counted, note, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.sue.status import Review

app = typer.Typer(
    help="Examine how chosen requirements can be read; not whether they are true.", no_args_is_help=True
)

_LENSES = "euthyphro, meno, parmenides, cratylus, theaetetus, sophist, gorgias, republic, philebus"
_EXCERPT = 60

Run = Annotated[str, typer.Argument(help="The id of a review or its beginning.", metavar="RUN")]


@app.command()
def review(
    context: typer.Context,
    drawer: Annotated[
        list[str], typer.Option("--drawer", help="A drawer to read: its id or its beginning (1 to 20).")
    ],
    decision: Annotated[
        str, typer.Option("--decision", help="The decision or the reading to examine.", metavar="TEXT")
    ],
    provider: Annotated[
        str,
        typer.Option(
            "--provider",
            help="Who is asked: ollama (on this machine), codex, openai-compat, anthropic, claude-cli.",
        ),
    ] = "ollama",
    model: Annotated[
        str | None, typer.Option("--model", help="Its model; without it, the usual one.")
    ] = None,
    lens: Annotated[str, typer.Option("--lens", help=f"The order of questions: {_LENSES}.")] = "euthyphro",
    max_turns: Annotated[int, typer.Option("--max-turns", help="Questions at most.", min=1, max=14)] = 7,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for an answer.", min=1, max=300)
    ] = 120,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is over.")] = False,
    as_json: AsJson = False,
) -> int:
    """Begin a review of drawers under one lens; it goes on when the terminal is closed.

    Another provider than ollama sends the text of the drawers to it, with secrets masked. Exit code 1 when
    the review failed or was interrupted.
    """
    with castle(context) as service:
        begun = service.sue_review(
            drawer,
            decision,
            provider=provider,
            model=model,
            lens=lens,
            max_turns=max_turns,
            timeout=timeout,
        )
        if begun.external:
            note(f"the text of {counted(len(begun.drawers), 'drawer')} goes to {begun.place} ({begun.model})")
        if wait:
            note(f"review {begun.id[:12]} goes on by itself should this be broken off")
            begun = service.sue_wait(begun.id)
    _tell(begun, as_json)
    return _code(begun)


@app.command()
def status(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Argument(help="The id of a review or its beginning.", metavar="[RUN]")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show how a review stands, or list the last 20 and the lenses. Exit code 1 for one that failed."""
    from castle.sue.method import LENSES

    with castle(context) as service:
        found = service.sue_status(run)
    if not isinstance(found, list):
        _tell(found, as_json)
        return _code(found)
    lenses = {lens.name: lens.focus for lens in LENSES.values()}
    if as_json:
        say_json({"reviews": found, "lenses": lenses})
        return 0
    if found:
        rows = [
            (
                one.id,
                one.status,
                one.terminal_state,
                one.lens,
                to_iso(one.created_at)[:16],
                one.decision[:_EXCERPT],
            )
            for one in found
        ]
        say_table(("id", "status", "ended", "lens", "made", "decision"), rows)
    say_table(("lens", "keeps in view"), list(lenses.items()))
    return 0


@app.command()
def report(context: typer.Context, run: Run, as_json: AsJson = False) -> None:
    """Print the report of a review as Markdown."""
    with castle(context) as service:
        text = service.sue_report(run)
        found = cast("Review", service.sue_status(run))
    if as_json:
        say_json({"id": found.id, "report": text})
    else:
        say(text.rstrip("\n"))


def _code(found: Review) -> int:
    return 1 if found.status in ("failed", "interrupted") else 0


def _tell(found: Review, as_json: bool) -> None:
    if as_json:
        say_json(found)
        return
    say(f"{found.id}  {found.status}  {found.terminal_state}".rstrip())
    say(f"{found.lens}, turn {found.turns} of {found.max_turns}, {found.model} ({found.provider})")
    if found.why:
        say(found.why)
    if found.claim:
        say(f"claim: {found.claim}")
    if found.report:
        note(f"`castle sue report {found.id[:12]}` prints the report")
    elif not found.settled:
        note(f"`castle sue status {found.id[:12]}` shows how it stands")
