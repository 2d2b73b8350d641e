"""``castle search``, ``get``, ``list`` and ``status``: asking the palace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.asking import reading
from castle.cli.common import MOST, AsJson, AsOf, History, Kind, Room, Source, Wing, castle
from castle.cli.hits import second, where
from castle.cli.output import PARTIAL, counted, note, say, say_json, say_table, shortened, write
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.answers import Found
    from castle.store.receipts import Receipt
    from castle.store.status import Status

_PLACE = 48
"""Characters of a source's path that a list shows, of its end; --json has all of it."""


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command()(get)
    app.command("list")(list_)
    app.command()(sessions)
    app.command()(status)


def get(
    context: typer.Context,
    id: Annotated[
        str, typer.Argument(help="A drawer's id or its beginning; or what the options below name.")
    ],
    neighbours: Annotated[
        int, typer.Option("--context", help="Drawers before and after it to show as well.", min=0, max=MOST)
    ] = 0,
    source: Annotated[
        bool, typer.Option("--source", help="The whole source it stands in; its path is an id, too.")
    ] = False,
    session: Annotated[
        bool, typer.Option("--session", help="The whole session; its id is one, too.")
    ] = False,
    message: Annotated[
        bool, typer.Option("--message", help="The message that a transcript gives this id.")
    ] = False,
    within: Annotated[
        str | None,
        typer.Option("--in", help="With --message: the session it stands in.", metavar="SESSION"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a drawer, its surroundings, its whole source or session, or a message, word for word."""
    if session:
        _get_session(context, id, as_json)
        return
    with reading(context) as service:
        if message:
            found = service.get_message(id, session=within)
        else:
            found = service.get_source(id) if source else service.get(id, context=neighbours)
    if as_json:
        say_json(found)
    elif source or message:
        text = "".join(part.text for part in found)
        write(f"{text}\n" if message and not text.endswith("\n") else text)
    else:
        for part in found:
            _say_found(part)
    sealed = sum(part.sealed for part in found)
    if sealed:
        note(f"{sealed} secret{'s are' if sealed > 1 else ' is'} masked; the palace keeps the exact text")


def sessions(
    context: typer.Context,
    wing: Wing = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 20,
    offset: Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)] = 0,
    as_json: AsJson = False,
) -> None:
    """List the conversations that are filed, the latest first."""
    with castle(context) as service:
        page = service.sessions(wing=wing, limit=limit, offset=offset)
    if as_json:
        say_json(page)
        return
    rows = [
        (
            row.session,
            row.wing,
            row.format,
            row.messages,
            to_iso(row.ended_at)[:16] if row.ended_at else "",
            row.title,
        )
        for row in page.sessions
    ]
    say_table(("session", "wing", "format", "messages", "last", "title"), rows)
    note(f"{page.offset + 1 if rows else 0}-{page.offset + len(rows)} of {page.total}")


def _get_session(context: typer.Context, name: str, as_json: bool) -> None:
    with castle(context) as service:
        found = service.get_session(name)
    if as_json:
        say_json(found)
        return
    for message in found:
        marks = [
            message.speaker or message.role,
            "" if message.kind == "message" else message.kind,
            message.tool,
        ]
        when = to_iso(message.said_at) if message.said_at else "no time"
        hidden = "" if message.shown else "  (not shown)"
        say(f"-- {'  '.join(mark for mark in marks if mark)}  {when}{hidden}")
        if message.withheld:
            note(f"counted and not stored: {counted(message.withheld, 'byte')}")
        write(message.text if message.text.endswith("\n") else f"{message.text}\n")


def list_(
    context: typer.Context,
    wing: Wing = None,
    room: Room = None,
    source: Source = None,
    kind: Kind = None,
    history: History = False,
    as_of: AsOf = None,
    sources: Annotated[bool, typer.Option("--sources", help="List sources instead of drawers.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=MOST)] = 20,
    offset: Annotated[int, typer.Option("--offset", help="How many to pass over.", min=0, max=MOST)] = 0,
    as_json: AsJson = False,
) -> None:
    """List drawers or sources, a page at a time."""
    with castle(context) as service:
        if sources:
            page = service.list_sources(wing=wing, limit=limit, offset=offset)
        else:
            page = service.list_drawers(
                wing=wing,
                room=room,
                source=source,
                kinds=kind or (),
                history=history,
                as_of=as_of,
                limit=limit,
                offset=offset,
            )
    if as_json:
        say_json(page)
        return
    if sources:
        rows = [
            (s.wing, s.room, shortened(s.path, _PLACE), s.revision, _source_state(s.gone, s.forgotten))
            for s in page.sources
        ]
        say_table(("wing", "room", "source", "revision", "state"), rows)
    else:
        say_table(("id", "wing", "room", "source", "text"), [_row(found) for found in page.drawers])
    shown = len(page.sources) if sources else len(page.drawers)
    note(f"{page.offset + 1 if shown else 0}-{page.offset + shown} of {page.total}")


def status(context: typer.Context, as_json: AsJson = False) -> int:
    """Show what the palace holds. Exit code 3 when an index is behind or damaged, or a save has failed."""
    with castle(context) as service:
        found = service.status()
    late = [p for p in found.projections if p.behind or p.trouble]
    if as_json:
        say_json(found)
    else:
        _say_status(found)
    wrong = late or found.unfinished_purges or found.failed_save is not None or found.spool_trouble
    return PARTIAL if wrong else 0


def _minute(moment: int | None) -> str:
    return to_iso(moment)[:16] if moment is not None else ""


def _say_found(found: Found) -> None:
    say(f"{found.id}  {found.wing} / {found.room}  {where(found)}  {found.state}")
    say(f"written {second(found.authored_at)}, filed {second(found.filed_at)} by {found.added_by}")
    say()
    write(found.text if found.text.endswith("\n") else f"{found.text}\n")
    say()


def _row(found: Found) -> Sequence[object]:
    first = " ".join(found.text.split())
    place = shortened(where(found), _PLACE)
    return (found.id, found.wing, found.room, place, first[:60] + ("…" if len(first) > 60 else ""))


def _source_state(gone: bool, forgotten: bool) -> str:
    return "forgotten" if forgotten else "gone" if gone else "current"


def save_failed(receipt: Receipt) -> str:
    """Say of a receipt which save failed, when and why."""
    session = f" of session {receipt.session}" if receipt.session else ""
    where = f" ({receipt.transcript})" if receipt.transcript else ""
    return f"THE LAST SAVE{session} FAILED at {second(receipt.at)}: {receipt.detail}{where}"


def _say_status(found: Status) -> None:
    from castle.mine.drainer import at_work

    say(f"palace {found.palace}")
    if found.failed_save is not None:
        helps = "`castle receipts --failed` lists such saves, --dismiss settles one"
        say(f"{save_failed(found.failed_save)}; {helps}")
    say(
        f"{counted(found.drawers, 'drawer')} from {counted(found.sources, 'source')}"
        f" ({found.superseded:,} superseded, {found.forgotten:,} forgotten), embedder {found.embedder}"
    )
    size = found.ledger_bytes + found.cache_bytes + sum(p.bytes for p in found.projections)
    say(f"{size / 1e6:,.1f} MB on disk")
    drainer = at_work(Path(found.palace))
    works = f"a drainer is at work (process {drainer})" if drainer is not None else ""
    for projection in found.projections:
        if projection.trouble:
            say(f"{projection.name}: {projection.trouble}")
        elif projection.behind:
            late = counted(projection.behind, "drawer")
            helps = (
                f"{works}; should it stay so, `castle repair` helps"
                if works
                else "`castle repair` catches up"
            )
            say(f"{projection.name}: {late} behind; {helps}")
    if found.reindex:
        say(f"reindex: {found.reindex}; searches use the vectors there were until then")
    if found.old_detector:
        old = counted(found.old_detector, "drawer")
        say(f"secrets: {old} read with older rules, not in the indexes yet; `castle repair` reads them again")
    if found.unfinished_purges:
        say(f"purges that are not finished: {found.unfinished_purges:,}; `castle repair` finishes them")
    if found.spool_trouble:
        say(f"HOOKS CANNOT NOTE ANYTHING: {found.spool_trouble}; move that away, then `castle sweep`")
    if found.spool_events:
        say(f"waiting hook events: {found.spool_events:,}; {works or '`castle sweep` files what they name'}")
    if found.places:
        say()
        rows = [(p.wing, p.room, p.current, p.superseded, p.forgotten) for p in found.places]
        say_table(("wing", "room", "drawers", "superseded", "forgotten"), rows)
