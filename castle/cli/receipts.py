"""``castle receipts``: whether the sessions of agents were saved."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import MOST, AsJson, castle
from castle.cli.output import PARTIAL, counted, note, say, say_json, say_table
from castle.clock import to_iso
from castle.errors import UsageError

if TYPE_CHECKING:
    from castle.mine.spool import Dismissed
    from castle.store.receipts import Receipt

_SHORT = 13
"""How much of a session's id a terminal shows: as much of it as its beginning has of the time."""


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(receipts)


def receipts(
    context: typer.Context,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only saves that failed and that no later one made up for.")
    ] = False,
    session: Annotated[
        str | None, typer.Option("--session", help="Only this session: its id or the beginning of it.")
    ] = None,
    dismiss: Annotated[
        str | None,
        typer.Option(
            "--dismiss",
            help="Settle a save that cannot be made up for: a receipt's id, or a session.",
            metavar="ID|SESSION",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 20,
    offset: Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)] = 0,
    as_json: AsJson = False,
) -> int:
    """List what saves of agents' sessions were to store and did store, the latest first.

    An entry is what a session is filed as: what was said, a call of a tool, thinking. Withheld are private
    entries, and what Castle itself had told the agent. Exit code 3 when the last save of a session failed;
    `--dismiss` settles one whose transcript is gone.
    """
    if dismiss is not None:
        if failed or session is not None:
            raise UsageError("--dismiss names the saves itself: leave --failed and --session out")
        return _dismiss(context, dismiss, as_json)
    with castle(context) as service:
        page = service.receipts(limit=limit, offset=offset, session=session, failed=failed)
    if as_json:
        say_json(page)
    else:
        whole = not sys.stdout.isatty()
        rows = [
            (
                one.id,
                to_iso(one.at)[:16],
                one.session if whole else one.session[:_SHORT],
                _stored(one),
                one.new,
                one.state if one.settled_at is None else f"{one.state}, settled",
                one.detail,
            )
            for one in page.receipts
        ]
        say_table(("id", "saved", "session", "entries stored", "new", "state", "detail"), rows)
        note(f"{page.offset + 1 if rows else 0}-{page.offset + len(rows)} of {page.total}")
    if page.failing:
        what = counted(page.failing, "session")
        note(f"{what} not saved; `castle sweep` tries again, `castle receipts --dismiss ID` settles one")
    return PARTIAL if page.failing else 0


def _stored(one: Receipt) -> str:
    withheld = f", {one.withheld:,} withheld" if one.withheld else ""
    return f"{one.stored:,} of {one.entries:,}{withheld}"


def _dismiss(context: typer.Context, name: str, as_json: bool) -> int:
    with castle(context) as service:
        settled = service.dismiss_save(name)
    if as_json:
        say_json(settled)
    else:
        for one in settled:
            say(f"dismissed: {_told(one)}")
    return 0


def _told(one: Dismissed) -> str:
    what = f"receipt {one.receipt.id} of session {one.receipt.session or '(unknown)'}"
    if one.gone:
        return (
            f"{what}; its transcript {one.receipt.transcript} is gone: "
            "what was said in it and not saved before is lost"
        )
    return f"{what} ({one.receipt.detail}); its transcript {one.receipt.transcript} is still there"
