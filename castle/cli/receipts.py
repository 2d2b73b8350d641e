"""``castle receipts``: whether the sessions of agents were saved."""

from __future__ import annotations

from typing import Annotated

import typer

from castle.cli.common import MOST, AsJson, castle
from castle.cli.finding import second
from castle.cli.output import PARTIAL, counted, note, say_json, say_table


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
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 20,
    offset: Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)] = 0,
    as_json: AsJson = False,
) -> int:
    """List what saves of agents' sessions were to store and did store, the latest first.

    Exit code 3 when the last save of a session failed.
    """
    with castle(context) as service:
        page = service.receipts(limit=limit, offset=offset, session=session, failed=failed)
    if as_json:
        say_json(page)
    else:
        rows = [
            (
                second(one.at),
                one.session,
                one.hook,
                f"{one.stored:,} of {one.expected:,}",
                one.new,
                one.state if one.settled_at is None else f"{one.state}, settled",
                one.detail,
            )
            for one in page.receipts
        ]
        say_table(("saved", "session", "hook", "messages", "new", "state", "detail"), rows)
        note(f"{page.offset + 1 if rows else 0}-{page.offset + len(rows)} of {page.total}")
    if page.failing:
        note(f"{counted(page.failing, 'session')} not saved; `castle sweep` tries again")
    return PARTIAL if page.failing else 0
