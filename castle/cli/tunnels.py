"""``castle tunnels``: ways from wing to wing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, Wing, castle
from castle.cli.output import counted, note, say, say_json, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.store.tunnel_values import Tunnel

app = typer.Typer(help="Ways from wing to wing: same rooms, and tunnels made by hand.", no_args_is_help=True)

Place = Annotated[str, typer.Argument(help="A room of a wing.", metavar="WING/ROOM")]


@app.command()
def create(
    context: typer.Context,
    source: Place,
    target: Place,
    label: Annotated[str, typer.Option("--label", help="What the two have to do with each other.")] = "",
    source_drawer: Annotated[
        str | None, typer.Option("--source-drawer", help="A drawer it begins at: its id or its beginning.")
    ] = None,
    target_drawer: Annotated[
        str | None, typer.Option("--target-drawer", help="A drawer it leads to: its id or its beginning.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a tunnel between two rooms, or change the one there is."""
    from castle.store.tunnel_values import parse_spot

    ends = parse_spot(source), parse_spot(target)
    with castle(context) as service:
        tunnel = service.tunnels.create(
            *ends, label=label, source_drawer=source_drawer, target_drawer=target_drawer
        )
    _say_one(tunnel, as_json)


@app.command("list")
def list_(context: typer.Context, wing: Wing = None, as_json: AsJson = False) -> None:
    """List the tunnels made by hand."""
    with castle(context) as service:
        found = service.tunnels.made(wing=wing)
    if as_json:
        say_json(found)
    else:
        _say_made(found)


@app.command()
def delete(
    context: typer.Context,
    tunnel: Annotated[str, typer.Argument(help="The tunnel's id or its beginning.", metavar="ID")],
    as_json: AsJson = False,
) -> None:
    """Delete a tunnel; that it was there stays recorded, and making it again brings it back."""
    with castle(context) as service:
        gone = service.tunnels.delete(tunnel)
    if as_json:
        say_json({"deleted": gone.id})
    else:
        note(f"deleted {gone.id}: {gone.source} - {gone.target}")


@app.command()
def find(
    context: typer.Context,
    wing_a: Annotated[str | None, typer.Option("--wing-a", help="Only from or to this wing.")] = None,
    wing_b: Annotated[str | None, typer.Option("--wing-b", help="Only from or to this wing.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what leads from wing to wing: rooms of the same name, and tunnels made by hand."""
    with castle(context) as service:
        found = service.tunnels.find(wing_a=wing_a, wing_b=wing_b)
    if as_json:
        say_json(found)
        return
    if found.rooms:
        say_table(
            ("room", "wings", "drawers", "last"),
            [(r.room, ", ".join(r.wings), r.drawers, to_iso(r.last_at)[:10]) for r in found.rooms],
        )
    if found.topics:
        say_table(("topic", "wings"), [(t.topic, ", ".join(t.wings)) for t in found.topics])
    if found.made:
        _say_made(found.made)
    shown = len(found.made) + len(found.rooms) + len(found.topics)
    note(f"{shown:,} of {found.total:,} shown")


@app.command()
def follow(context: typer.Context, place: Place, as_json: AsJson = False) -> None:
    """Show where a room leads."""
    from castle.store.tunnel_values import parse_spot

    spot = parse_spot(place)
    with castle(context) as service:
        found = service.tunnels.follow(spot)
    if as_json:
        say_json(found)
        return
    for way in found:
        arrow = {"outgoing": "→", "incoming": "←", "both": "↔"}[way.direction]
        say(f"{arrow} {way.wing}/{way.room}  {way.label or way.kind}")
        if way.preview:
            say("    " + " ".join(way.preview.split()))
    note(f"{counted(len(found), 'way')} from {spot}")


@app.command()
def traverse(
    context: typer.Context,
    start: Annotated[str, typer.Argument(help="The room to start from.", metavar="ROOM")],
    max_hops: Annotated[int, typer.Option("--max-hops", help="How far.", min=1, max=10)] = 2,
    as_json: AsJson = False,
) -> None:
    """Show the rooms that can be reached through shared wings and tunnels, at most 50."""
    with castle(context) as service:
        found = service.tunnels.traverse(start, max_hops=max_hops)
    if as_json:
        say_json(found)
        return
    say_table(
        ("hop", "room", "wings", "drawers", "via"),
        [(s.hop, s.room, ", ".join(s.wings), s.drawers, ", ".join(s.via)) for s in found.steps],
    )
    note(f"{len(found.steps):,} of {found.total:,} rooms within {counted(max_hops, 'hop')} of {start}")


@app.command()
def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """Count rooms, and what connects them."""
    with castle(context) as service:
        found = service.tunnels.stats()
    if as_json:
        say_json(found)
        return
    say_table(
        ("rooms", "in several wings", "edges", "made by hand"),
        [(found.total_rooms, found.tunnel_rooms, found.total_edges, found.made)],
    )
    say_table(("wing", "rooms"), list(found.rooms_per_wing.items()))
    if found.top_tunnels:
        say_table(
            ("room", "wings", "drawers"),
            [(room.room, ", ".join(room.wings), room.drawers) for room in found.top_tunnels],
        )


def _say_one(tunnel: Tunnel, as_json: bool) -> None:
    if as_json:
        say_json(tunnel)
    else:
        say(f"{tunnel.id}  {tunnel.source} - {tunnel.target}{f'  {tunnel.label}' if tunnel.label else ''}")


def _say_made(found: Sequence[Tunnel]) -> None:
    say_table(
        ("id", "from", "to", "label", "made"),
        [(t.id, str(t.source), str(t.target), t.label, to_iso(t.created_at)[:10]) for t in found],
    )
