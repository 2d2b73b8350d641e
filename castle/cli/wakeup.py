"""``castle wake-up``, ``recall``, ``pin``, ``unpin``, ``pins``: what comes back unasked, and what first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import MOST, AsJson, Room, Wing, castle
from castle.cli.hits import second, where
from castle.cli.output import PARTIAL, note, say, say_json, say_table
from castle.cli.searching import unknown_place

if TYPE_CHECKING:
    from castle.service.wakeup import Pinning

RULE = "=" * 50

Id = Annotated[str, typer.Argument(help="A drawer's id or its beginning.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("wake-up")(wake_up)
    app.command()(recall)
    app.command()(pin)
    app.command()(unpin)
    app.command()(pins)


def wake_up(context: typer.Context, wing: Wing = None, as_json: AsJson = False) -> int:
    """Print what an agent should know when it begins: who you are, then the essentials, best first.

    Never more than 900 tokens. Exit code 3 when something is not in order; scores that are still to be made
    are told and are nothing of that kind.
    """
    with castle(context) as service:
        found = service.wake_up(wing)
        hint = "" if found.drawers else unknown_place(service.places(), wing)
    if as_json:
        say_json(found)
    else:
        say(f"Wake-up, {'all wings' if found.wing is None else f'wing {found.wing}'}: {found.tokens} tokens")
        say(RULE)
        say(found.text)
    for reason in filter(None, (hint, *found.degraded, *found.pending)):
        note(reason)
    return PARTIAL if found.degraded else 0


def recall(
    context: typer.Context,
    wing: Wing = None,
    room: Room = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 10,
    offset: Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)] = 0,
    as_json: AsJson = False,
) -> None:
    """Print what a wing or a room holds, the newest first, with the beginning of each drawer."""
    with castle(context) as service:
        page = service.recall(wing=wing, room=room, limit=limit, offset=offset)
        hint = "" if page.total else unknown_place(service.places(), wing, room)
    if hint:
        note(hint)
    if as_json:
        say_json(page)
        return
    from castle.wakeup.snippets import LONGER, snippet

    for found in page.drawers:
        who = found.speaker or found.role
        written = f"written {second(found.authored_at)}{f' by {who}' if who else ''}"
        say(f"{found.id}  {found.wing} / {found.room}  {where(found)}")
        say(f"{written}: {snippet(found.text, LONGER)}")
        say()
    shown = len(page.drawers)
    note(f"{page.offset + 1 if shown else 0}-{page.offset + shown} of {page.total}")


def pin(context: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Put a drawer first at every wake-up, until it is unpinned."""
    with castle(context) as service:
        done = service.pin(id)
    _tell(done, "pinned" if done.changed else "was pinned already", as_json)


def unpin(context: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Take a drawer's pin away."""
    with castle(context) as service:
        done = service.unpin(id)
    _tell(done, "unpinned" if done.changed else "was not pinned", as_json)


def pins(context: typer.Context, wing: Wing = None, as_json: AsJson = False) -> None:
    """List the pinned drawers, the latest pin first; those that are not current are not shown at wake-up."""
    with castle(context) as service:
        found = service.pins(wing=wing)
    if as_json:
        say_json(found)
        return
    from castle.wakeup.snippets import snippet

    rows = [
        (
            one.drawer.id,
            one.drawer.wing,
            one.drawer.room,
            one.drawer.state,
            f"{second(one.pinned_at)} by {one.pinned_by}",
            snippet(one.drawer.text, 60),
        )
        for one in found
    ]
    say_table(("id", "wing", "room", "state", "pinned", "text"), rows)


def _tell(done: Pinning, what: str, as_json: bool) -> None:
    if as_json:
        say_json(done)
    else:
        note(f"{done.id} {what}")
