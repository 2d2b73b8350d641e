"""Purge: destroying drawers, and every byte that Castle made of them.

A purge goes through three states, each committed before the next begins, so that one which was killed is
finished by the next purge or repair. ``begun``: it is known what goes, and all is still there; files beside
the ledger are searched for the text. ``erased``: one transaction has made stubs of the drawers and erased
what was derived from them; indexes and caches are thrown away, and the ledger is written anew. ``done``: no
file of the palace holds the text. The palaces that restores have moved aside are Castle's own copies: the
same is done to them, before it is done here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select, update

from castle.errors import CastleError, PalaceBusyError, RefusedError
from castle.models.token_cache import TokenCache
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.drafts import remove_left
from castle.store.ledger import batches
from castle.store.locks import FileLock
from castle.store.palace import TOKEN_CACHE, Palace
from castle.store.purge_files import PREPARED, Finder, clean_directory, clean_spool
from castle.store.purge_plan import Outside, plan, quoting, targets, texts_of
from castle.store.purge_rows import erase, forget_inputs
from castle.store.purge_tables import purge_inputs, purged, purges
from castle.store.purged import BEGUN, DONE, ERASED, STUB, is_there, unfinished
from castle.store.restoring import set_aside
from castle.store.reviews import forget_reviews
from castle.store.schema import drawers, tables
from castle.store.spaces import discard_others
from castle.store.spool import FOLDER as SPOOL
from castle.store.spool import LOCK as SPOOL_LOCK

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.1
MOST_PIECES = 200_000
"""Pieces of all texts, in each encoding, that files are searched for."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge did; ``unfinished`` says why it is not done yet, "" when it is.

    ``removed`` files of the palace held the text. ``left`` ones hold a part of it and were not made by
    Castle. ``notes`` are for people.
    """

    purge: int
    drawers: int
    sources: int
    copies: tuple[str, ...] = ()
    quoting: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
    backups: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    unfinished: str = ""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Cleaned:
    removed: list[Path] = field(default_factory=list)
    left: list[Path] = field(default_factory=list)


def purge(
    palace: Palace,
    *,
    id_: str | None = None,
    source: str | None = None,
    wing: str | None = None,
    copies: bool = False,
    reason: str,
    actor: str,
) -> Purged:
    """Destroy drawers for good; finishes purges that were begun before it.

    Raises NotFoundError, RefusedError for a palace that cannot be written, PalaceBusyError when another purge
    or the drainer of the spool is at work. What stands in the way of its end later on is told in the answer.
    """
    if why := palace.ledger.unwritable():
        raise RefusedError(f"{why}: nothing can be purged")
    with _alone(palace):
        resume(palace)
        planned = plan(palace, id_=id_, source=source, wing=wing, copies=copies)
        with palace.ledger.read() as cx:
            wanted = _Content(cx, targets(cx, id_, source, wing, copies))
        clean, notes = _purge_aside(palace, wanted, reason, actor)
        with palace.ledger.write() as cx:
            number, drawer_count, source_count = _begin(
                cx, targets(cx, id_, source, wing, copies), reason, actor, palace.ledger.clock()
            )
        cleaned = _Cleaned()
        stopped = _carry_on(palace, number, cleaned)
    return Purged(
        purge=number,
        drawers=drawer_count,
        sources=source_count,
        copies=planned.copies,
        quoting=planned.quoting,
        outside=planned.outside,
        backups=tuple(path for path in planned.backups if path not in clean),
        removed=tuple(str(path) for path in cleaned.removed),
        left=tuple(str(path) for path in cleaned.left),
        unfinished=stopped,
        notes=(*notes, *(_bring_up_to_date(palace) if not stopped else ())),
    )


class _Content:
    """What drawers hold, by which those of another palace are known."""

    def __init__(self, cx: Connection, rids: Sequence[int]) -> None:
        self.texts = list(texts_of(cx, rids))
        self._hashes = [
            digest
            for part in batches(rids)
            for digest in cx.execute(select(drawers.c.sha256).where(drawers.c.rid.in_(part))).scalars()
        ]

    def drawers_in(self, cx: Connection) -> list[int]:
        """Return the drawers of a palace with the same bytes."""
        queries = (select(drawers.c.rid).where(drawers.c.sha256.in_(p), ~STUB) for p in batches(self._hashes))
        return sorted({rid for query in queries for rid in cx.execute(query).scalars()})


def _purge_aside(palace: Palace, wanted: _Content, reason: str, actor: str) -> tuple[set[str], list[str]]:
    """Destroy the same content in palaces that were moved aside; return those without it, and what to say."""
    clean: set[str] = set()
    notes: list[str] = []
    root = palace.root.resolve()
    remove_left(root)
    for place in set_aside(root):
        try:
            with closing(Palace(place, clock=palace.ledger.clock)) as former:
                count, whole = _purge_content(former, wanted, reason, actor)
        except CastleError as error:
            notes.append(f"a palace that was moved aside may hold it: {error}")
            continue
        if count:
            notes.append(f"{count:,} purged in {place}, too")
        if whole:
            clean.add(str(place))
    return clean, notes


def _purge_content(palace: Palace, wanted: _Content, reason: str, actor: str) -> tuple[int, bool]:
    """Destroy the drawers with this content; return how many, and whether nothing that stays holds a part."""
    if why := palace.ledger.unwritable():
        raise RefusedError(why)
    with _alone(palace):
        resume(palace)
        with palace.ledger.read() as cx:
            rids = wanted.drawers_in(cx)
        if rids:
            with palace.ledger.write() as cx:
                number, *_ = _begin(cx, rids, reason, actor, palace.ledger.clock())
            if stopped := _carry_on(palace, number, _Cleaned()):
                raise PalaceBusyError(stopped)
        with palace.ledger.read() as cx:
            return len(rids), not any(quoting(cx, wanted.texts, set()))


def finish(palace: Palace) -> int:
    """Finish purges that were begun and not done, in palaces that were moved aside, too; return how many.

    Raises what stands in the way here.
    """
    if palace.ledger.read_only:
        return 0
    count = 0
    for place in set_aside(palace.root.resolve()):
        # One that cannot be opened holds what it held: the next purge names it.
        with suppress(CastleError), closing(Palace(place, clock=palace.ledger.clock)) as former:
            count += _finish(former)
    return count + _finish(palace)


def _finish(palace: Palace) -> int:
    with palace.ledger.read() as cx:
        if not unfinished(cx):
            return 0
    with _alone(palace):
        return resume(palace)


def resume(palace: Palace) -> int:
    """Do what ``finish`` does, for a caller that has the palace's purges to itself."""
    with palace.ledger.read() as cx:
        if not is_there(cx):
            return 0
        waiting = cx.execute(select(purges.c.id).where(purges.c.state != DONE).order_by(purges.c.id))
        numbers = list(waiting.scalars())
    for number in numbers:
        if stopped := _carry_on(palace, number, _Cleaned()):
            raise PalaceBusyError(f"a purge that was begun is not finished: {stopped}")
    return len(numbers)


# Carrying on


def _begin(cx: Connection, rids: Sequence[int], reason: str, actor: str, now: int) -> tuple[int, int, int]:
    """Write down what goes; return the number of the purge, of drawers and of sources."""
    tables.create_all(cx, tables=[purges, purged, purge_inputs])
    count = len({source for part in batches(rids) for source in _sources(cx, part)})
    seen = sum(
        cx.execute(
            select(func.count()).where(drawers.c.rid.in_(part), drawers.c.seq.is_not(None))
        ).scalar_one()
        for part in batches(rids)
    )
    row = {"at": now, "actor": actor, "reason": reason, "state": BEGUN, "drawers": seen, "sources": count}
    number = int(cx.execute(insert(purges).values(**row)).lastrowid)
    for part in batches(rids):
        cx.execute(insert(purged), [{"drawer": rid, "purge": number, "size": 0} for rid in part])
    return number, seen, count


def _sources(cx: Connection, rids: Sequence[int]) -> Iterable[int]:
    return cx.execute(select(drawers.c.source).distinct().where(drawers.c.rid.in_(rids))).scalars()


def _carry_on(palace: Palace, number: int, cleaned: _Cleaned) -> str:
    """Bring a purge to its end; return what stopped it, "" when it is done."""
    try:
        with palace.ledger.read() as cx:
            state = cx.execute(select(purges.c.state).where(purges.c.id == number)).scalar_one()
        if state == BEGUN:
            with palace.ledger.read() as cx:
                rids = _rids(cx, number)
                finder = Finder(texts_of(cx, rids), max(1, MOST_PIECES // len(rids)))
            clean_spool(palace.root, finder)
            cleaned.removed += forget_reviews(palace, rids, finder)
            removed, left = clean_directory(palace.root, finder)
            cleaned.removed += removed
            cleaned.left += left
            with palace.ledger.write() as cx:
                erase(cx, _rids(cx, number), number, palace.salt)
                cx.execute(update(purges).where(purges.c.id == number).values(state=ERASED))
        _throw_away(palace, number)
        palace.ledger.compact(PATIENCE_SECONDS)
        # Once more: whoever was rendering it when the purge began may have written it since.
        _forget_prepared(palace)
        with palace.ledger.write() as cx:
            cx.execute(delete(purge_inputs).where(purge_inputs.c.purge == number))
            done = {"state": DONE, "finished_at": palace.ledger.clock()}
            cx.execute(update(purges).where(purges.c.id == number).values(**done))
    except (CastleError, OSError) as error:
        return str(error)
    return ""


def _rids(cx: Connection, number: int) -> list[int]:
    query = select(purged.c.drawer).where(purged.c.purge == number).order_by(purged.c.drawer)
    return list(cx.execute(query).scalars())


def _throw_away(palace: Palace, number: int) -> None:
    """Delete indexes and caches with all their older versions; they are made again from the ledger."""
    with _held(palace, "lexicon"):
        palace.lexicon.reset()
    with _held(palace, "vectors"):
        palace.vectors.reset()
        discard_others(palace)
        # Whoever was embedding until now may have put them back.
        with palace.ledger.write() as cx:
            forget_inputs(cx, number)
    palace.clear_the_way()
    TokenCache(palace.root / TOKEN_CACHE).clear()
    _forget_prepared(palace)


def _forget_prepared(palace: Palace) -> None:
    for name in PREPARED:
        for prepared in palace.root.glob(f"{name}*"):
            prepared.unlink(missing_ok=True)


@contextmanager
def _held(palace: Palace, name: str) -> Iterator[None]:
    """Hold a lock of the palace, waiting for it only so long."""
    with _taken(palace.lock(name), f"the index of {name} is being written by another process"):
        yield


@contextmanager
def _alone(palace: Palace) -> Iterator[None]:
    """Keep other purges and the drainer of the spool away."""
    with ExitStack() as stack:
        stack.enter_context(_taken(palace.lock("purge"), "another purge is at work"))
        if (folder := palace.root / SPOOL).is_dir():
            busy = "what hooks have noted is being filed"
            stack.enter_context(_taken(FileLock(folder / SPOOL_LOCK), busy))
        yield


@contextmanager
def _taken(lock: FileLock, busy: str) -> Iterator[None]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not lock.try_acquire():
        if not lock.reason.startswith("held") or time.monotonic() > deadline:
            raise PalaceBusyError(f"{busy} ({lock.reason}): run the command again")
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _bring_up_to_date(palace: Palace) -> Iterator[str]:
    """Make the indexes again, and say what hindered that: the purge itself is done."""
    for catch_up in (catch_up_lexicon, catch_up_vectors):
        try:
            catch_up(palace)
        except CastleError as error:
            yield f"the indexes are not complete yet: {error}"
