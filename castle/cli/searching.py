"""``castle search`` and ``castle why``: asking the palace, and asking why it answers so."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from castle.cli.asking import reading
from castle.cli.common import AsJson, AsOf, History, Kind, Room, Source, Wing, castle
from castle.cli.hits import headline, say_end, say_hits, say_way, where
from castle.cli.output import PARTIAL, note, say, say_json

if TYPE_CHECKING:
    from castle.search.why import Why
    from castle.store.reading import PlaceCount

Query = Annotated[str, typer.Argument(help="What you look for, in any words.")]
Limit = Annotated[int, typer.Option("--limit", "--results", "-n", help="How many at most.")]
Since = Annotated[
    str | None, typer.Option("--since", help="Written at or after this ISO date or time.", metavar="TIME")
]
Until = Annotated[
    str | None, typer.Option("--until", help="Written before this time, or up to this day.", metavar="TIME")
]
Role = Annotated[str | None, typer.Option("--role", help="Only this role (user, assistant).")]
Mode = Annotated[
    Literal["fast", "standard", "boosted", "max"] | None,
    typer.Option("--mode", help="Which stages run; without it the setting search_mode says."),
]
By = Annotated[
    Literal["drawer", "message", "session"],
    typer.Option("--by", help="What one result is: a drawer, or the message or session it is part of."),
]
Now = Annotated[
    str | None,
    typer.Option("--now", help="The time that recency and words like yesterday count from.", metavar="TIME"),
]
InfoWeight = Annotated[
    bool | None,
    typer.Option("--info-weight/--no-info-weight", help="Let drawers that say little new step back."),
]


_NAMED = 20
"""Wings or rooms that a hint names at most."""


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(search)
    app.command()(why)


def search(
    context: typer.Context,
    query: Query,
    wing: Wing = None,
    room: Room = None,
    limit: Limit = 5,
    mode: Mode = None,
    by: By = "drawer",
    since: Since = None,
    until: Until = None,
    role: Role = None,
    source: Source = None,
    kind: Kind = None,
    history: History = False,
    as_of: AsOf = None,
    now: Now = None,
    info_weight: InfoWeight = None,
    hide_cold: Annotated[
        bool, typer.Option("--hide-cold", help="Leave out what is cold or expired in memory.")
    ] = False,
    retention_weight: Annotated[
        float,
        typer.Option(
            "--retention-weight",
            min=0.0,
            max=1.0,
            help="How much it counts how near memory keeps a drawer.",
            metavar="W",
        ),
    ] = 0.0,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Go on where the page before ended.", metavar="CURSOR")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each hit's way through the stages.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Find the exact words again. Exit code 3 when something could not be searched."""
    with reading(context) as service:
        result = service.search(
            query,
            wing=wing,
            room=room,
            limit=limit,
            mode=mode,
            by=by,
            since=since,
            until=until,
            role=role,
            source=source,
            kinds=kind or (),
            history=history,
            as_of=as_of,
            now=now,
            info_weight=info_weight,
            cursor=cursor,
            hide_cold=hide_cold,
            retention_weight=retention_weight,
        )
        hint = "" if result.hits else unknown_place(service.places(), wing, room)
    if as_json:
        say_json(result)
    else:
        say_hits(result, explain)
    if hint:
        note(hint)
    return PARTIAL if result.degraded else 0


def why(
    context: typer.Context,
    query: Query,
    drawer: Annotated[
        str | None, typer.Option("--drawer", help="Say what became of this drawer.", metavar="ID")
    ] = None,
    wing: Wing = None,
    room: Room = None,
    limit: Limit = 5,
    mode: Mode = None,
    since: Since = None,
    until: Until = None,
    role: Role = None,
    source: Source = None,
    kind: Kind = None,
    history: History = False,
    as_of: AsOf = None,
    now: Now = None,
    info_weight: InfoWeight = None,
    as_json: AsJson = False,
) -> int:
    """Show how each hit of a search came to its place, or why a drawer is not among them."""
    with castle(context) as service:
        found = service.why(
            query,
            drawer=drawer,
            wing=wing,
            room=room,
            limit=limit,
            mode=mode,
            since=since,
            until=until,
            role=role,
            source=source,
            kinds=kind or (),
            history=history,
            as_of=as_of,
            now=now,
            info_weight=info_weight,
        )
    if as_json:
        say_json(found)
    else:
        _say_why(found)
    return PARTIAL if found.result.degraded else 0


def _say_why(found: Why) -> None:
    if found.fate is not None:
        say(f"{found.fate.id}: {found.fate.verdict}")
        say()
    for number, hit in enumerate(found.result.hits, start=1):
        say(headline(number, hit))
        say(f"    {where(hit)}")
        say()
        say_way(hit)
        say()
    say_end(found.result, explain=True)


def unknown_place(places: Sequence[PlaceCount], wing: str | None, room: str | None = None) -> str:
    """Say that a wing or room that was asked for is not there, and which are, or which have near names."""
    if not places:
        return "nothing is filed yet: castle mine PATH"
    wings = sorted({place.wing for place in places})
    if wing is not None and wing not in wings:
        return f"there is no wing {wing}{_there_are(wing, wings)}"
    rooms = sorted({place.room for place in places if wing in (None, place.wing)})
    if room is not None and room not in rooms:
        return f"there is no room {room}{_there_are(room, rooms)}"
    return ""


def _there_are(asked: str, names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return f"; there are: {', '.join(names)}"
    near = get_close_matches(asked, names, _NAMED, 0.5)
    if near:
        return f"; near it are: {', '.join(near)}"
    return f"; there are: {', '.join(names[:_NAMED])} and {len(names) - _NAMED:,} more (`castle status`)"
