"""``castle purge``: destroying what must not be kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from castle.cli.common import AsJson, castle
from castle.cli.output import PARTIAL, counted, note, say, say_json
from castle.errors import PalaceBusyError, RefusedError, UsageError

if TYPE_CHECKING:
    from castle.store.purge import Purged
    from castle.store.purge_plan import PurgePlan

_CONFIRM = 6
_SHOWN = 10


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command()(purge)


def purge(
    context: typer.Context,
    id: Annotated[str | None, typer.Argument(help="A drawer's id or its beginning.")] = None,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; it is kept, so it must not repeat the text.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    source: Annotated[str | None, typer.Option("--source", help="A whole source: its path.")] = None,
    wing: Annotated[str | None, typer.Option("--wing", help="A whole wing.")] = None,
    copies: Annotated[bool, typer.Option("--copies", help="Other drawers with the same text, too.")] = False,
    as_json: AsJson = False,
) -> int:
    """Destroy a drawer, a source or a wing for good, with everything that was made of it.

    Nothing brings it back, and the text is not filed again. Asks for a typed confirmation; without a terminal
    --yes is needed. Palaces that a restore moved aside lose it, too; files elsewhere are named and left
    alone. A purge that was interrupted is finished first, also without anything named. Exit code 3 when it
    could not be finished yet.
    """
    with castle(context) as service:
        nothing = id is None and source is None and wing is None
        try:
            finished = service.finish_purges()
        except PalaceBusyError as error:
            if not nothing:
                raise
            note(f"castle: {error}")
            return PARTIAL
        if nothing:
            return _finish(finished, as_json)
        if finished:
            note(
                f"finished first, because {'it was' if finished == 1 else 'they were'} begun before: "
                f"{counted(finished, 'purge')}"
            )
        planned = service.plan_purge(id, source=source, wing=wing, copies=copies)
        if not reason.strip():
            raise UsageError("a purge needs a reason: --reason TEXT, without the text that is to go")
        if not yes:
            _confirm(planned, id is not None)
        done = service.purge(id, reason=reason, source=source, wing=wing, copies=copies)
    if as_json:
        say_json(done)
    else:
        _tell(done)
    return PARTIAL if done.unfinished else 0


def _finish(count: int, as_json: bool) -> int:
    if not count:
        raise UsageError("nothing is named, and no purge waits to be finished: castle purge ID --reason TEXT")
    if as_json:
        say_json({"finished": count})
    else:
        note(f"{counted(count, 'purge')} finished")
    return 0


def _confirm(planned: PurgePlan, by_id: bool) -> None:
    """Let the person type what proves that this is meant."""
    if not sys.stdin.isatty():
        raise RefusedError("purge asks a person at a terminal: without one, add --yes; nothing was purged")
    drawers, sources = counted(len(planned.ids), "drawer"), counted(len(planned.sources), "source")
    note(f"{drawers} of {sources} will be destroyed for good, with all that was made of them:")
    for path in planned.sources[:_SHOWN]:
        note(f"  {path}")
    _name("the same text stands in drawers that stay (--copies destroys them, too)", planned.copies)
    _name("parts of it stand in drawers that stay", planned.quoting)
    wanted = planned.ids[0][:_CONFIRM] if by_id else str(len(planned.ids))
    asked = f"the first {_CONFIRM} characters of the id" if by_id else "the number of drawers"
    note(f"type {asked} to go on: ")
    if sys.stdin.readline().strip() != wanted:
        raise RefusedError(f"that is not {asked}: nothing was purged")


def _tell(done: Purged) -> None:
    say(f"{counted(done.drawers, 'drawer')} of {counted(done.sources, 'source')} purged")
    _name("the same text stands in drawers that were left", done.copies)
    _name("parts of it stand in drawers that were left", done.quoting)
    _name("deleted in the palace, because the text stood in it", done.removed)
    _name("a part of it stands in files of the palace that Castle did not make", done.left)
    _name("yours to delete, outside the palace", [f.path for f in done.outside if f.holds is not False])
    for text in done.notes:
        note(text)
    _name("copies of the palace, made before, which may hold it", done.backups)
    note("backups and exports that were made before hold it still: delete them, too")
    if done.unfinished:
        note(f"not finished: {done.unfinished}; `castle purge` goes on")


def _name(what: str, names: tuple[str, ...] | list[str]) -> None:
    if names:
        note(f"{what}:")
        for name in names[:_SHOWN]:
            note(f"  {name}")
        if len(names) > _SHOWN:
            note(f"  and {len(names) - _SHOWN:,} more: --json lists them all")
