"""Purge: destroying drawers, and every byte that Castle made of them.

A purge goes through three states, each committed before the next begins, so that one which was killed is
finished by the next purge or repair. ``begun``: it is known what goes, and all is still there; files beside
the ledger are searched for the text. ``erased``: one transaction has made stubs of the drawers and erased
what was derived from them; indexes and caches are thrown away, and the ledger is written anew. ``done``: no
file of the palace holds the text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from castle.errors import CastleError, NotFoundError, PalaceBusyError, RefusedError
from castle.models.token_cache import TokenCache
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.ledger import batches
from castle.store.locks import FileLock
from castle.store.palace import TOKEN_CACHE, Palace
from castle.store.places import chosen
from castle.store.purge_files import Finder, clean_directory, clean_spool
from castle.store.purge_rows import erase, forget_inputs
from castle.store.purge_tables import purge_inputs, purged, purges
from castle.store.purged import BEGUN, DONE, ERASED, STUB, copies_of, is_there, unfinished
from castle.store.schema import drawers, sources, tables
from castle.store.spaces import discard_others
from castle.store.spool import FOLDER as SPOOL
from castle.store.spool import LOCK as SPOOL_LOCK

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.1
MOST_PROBES = 64
MOST_PIECES = 200_000
"""Pieces of all texts, in each encoding, that files are searched for."""
_TEXTS_EACH = 16
_PROBE = 48
_PROBES_EACH = 8
_WITHOUT_FILE = ("note", "diary")


@dataclass(frozen=True, slots=True)
class Outside:
    """A file beyond the palace that the text came from; ``holds`` it, or None where that cannot be told."""

    path: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """What a purge would destroy, and what it would leave.

    ``copies`` are other drawers with the same bytes, ``quoting`` those that hold a part of the text: neither
    goes unless it is named. ``outside`` are files beyond the palace that the text came from, ``backups``
    copies of the palace: nobody but their owner deletes them.
    """

    ids: tuple[str, ...]
    sources: tuple[str, ...]
    copies: tuple[str, ...] = ()
    quoting: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
    backups: tuple[str, ...] = ()


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


def plan(
    palace: Palace,
    *,
    id_: str | None = None,
    source: str | None = None,
    wing: str | None = None,
    copies: bool = False,
) -> PurgePlan:
    """Say what a purge would destroy; changes nothing.

    ``copies`` counts in other drawers with the same bytes. Raises NotFoundError when there is no such
    drawer, source or wing, or nothing is left of it.
    """
    with palace.ledger.read() as cx:
        planned, came_from = _planned(cx, palace.root, _targets(cx, id_, source, wing, copies))
    return replace(planned, outside=tuple(_outside(came_from)))


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
    if palace.ledger.read_only:
        raise RefusedError(f"the palace at {palace.root} is read-only: nothing can be purged")
    with _alone(palace):
        resume(palace)
        planned = plan(palace, id_=id_, source=source, wing=wing, copies=copies)
        with palace.ledger.write() as cx:
            tables.create_all(cx, tables=[purges, purged, purge_inputs])
            rids = _targets(cx, id_, source, wing, copies)
            number, drawer_count, source_count = _begin(cx, rids, reason, actor, palace.ledger.clock())
        cleaned = _Cleaned()
        stopped = _carry_on(palace, number, cleaned)
    return Purged(
        purge=number,
        drawers=drawer_count,
        sources=source_count,
        copies=planned.copies,
        quoting=planned.quoting,
        outside=planned.outside,
        backups=planned.backups,
        removed=tuple(str(path) for path in cleaned.removed),
        left=tuple(str(path) for path in cleaned.left),
        unfinished=stopped,
        notes=tuple(_bring_up_to_date(palace)) if not stopped else (),
    )


def finish(palace: Palace) -> int:
    """Finish purges that were begun and not done; return how many there were.

    Raises what stands in the way.
    """
    with palace.ledger.read() as cx:
        if not unfinished(cx) or palace.ledger.read_only:
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


# Choosing


def _targets(
    cx: Connection, id_: str | None, source: str | None, wing: str | None, copies: bool
) -> list[int]:
    """Return the drawers to be destroyed; those that no revision holds yet are among them."""
    if wing is not None:
        condition = drawers.c.wing == wing
        if cx.execute(select(drawers.c.rid).where(condition).limit(1)).first() is None:
            raise NotFoundError(f"no wing {wing}: `castle status` shows them")
    else:
        condition = chosen(cx, id_, source, None)[0]
    rids = [rid for (rid,) in cx.execute(select(drawers.c.rid).where(condition, ~STUB))]
    if not rids:
        raise NotFoundError("nothing is left there that could be purged: all of it was purged before")
    same = _same_bytes(cx, rids, staged_only=not copies)
    return sorted({*rids, *same})


def _same_bytes(cx: Connection, rids: Sequence[int], *, staged_only: bool) -> Iterator[int]:
    """Yield other drawers with the bytes of these; those that are staged nobody can see or name."""
    for part in batches(rids):
        hashes = select(drawers.c.sha256).where(drawers.c.rid.in_(part))
        query = select(drawers.c.rid).where(drawers.c.sha256.in_(hashes), ~STUB)
        if staged_only:
            query = query.where(drawers.c.seq.is_(None))
        yield from cx.execute(query).scalars()


def _planned(cx: Connection, root: Path, rids: Sequence[int]) -> tuple[PurgePlan, dict[str, list[str]]]:
    """Return the plan as far as the ledger tells, and the files with some texts that came from each."""
    chosen_ones = set(rids)
    ids: list[str] = []
    paths: dict[str, list[str]] = {}
    came_from: dict[str, list[str]] = {}
    for part in batches(rids):
        query = select(drawers.c.id, drawers.c.seq, drawers.c.text, sources.c.path, sources.c.kind).join(
            sources, sources.c.id == drawers.c.source
        )
        for row in cx.execute(query.where(drawers.c.rid.in_(part)).order_by(drawers.c.rid)):
            if row.seq is not None:
                ids.append(row.id)
            texts = paths.setdefault(row.path, [])
            if len(texts) < _TEXTS_EACH:
                texts.append(row.text)
            if row.kind not in _WITHOUT_FILE:
                came_from[row.path] = texts
    same = [rid for rid in _same_bytes(cx, rids, staged_only=False) if rid not in chosen_ones]
    texts = list(texts_of(cx, rids[:MOST_PROBES]))
    planned = PurgePlan(
        ids=tuple(ids),
        sources=tuple(paths),
        copies=tuple(_ids(cx, same)),
        quoting=tuple(_quoting(cx, texts, {*chosen_ones, *same})),
        backups=tuple(str(path) for path in copies_of(cx, root)),
    )
    return planned, came_from


def texts_of(cx: Connection, rids: Sequence[int]) -> Iterator[str]:
    """Yield the exact texts of drawers."""
    for part in batches(rids):
        query = select(drawers.c.text).where(drawers.c.rid.in_(part)).order_by(drawers.c.rid)
        yield from cx.execute(query).scalars()


def _quoting(cx: Connection, texts: Iterable[str], without: set[int]) -> Iterator[str]:
    """Yield the ids of drawers that hold a part of the texts, as far as some probes tell."""
    probes: list[str] = []
    for text in texts:
        bare = text.strip()
        last = max(1, len(bare) - _PROBE)
        step = max(_PROBE, last // _PROBES_EACH)
        probes += [bare[at : at + _PROBE] for at in range(0, last, step)][:_PROBES_EACH]
    probes = [probe for probe in dict.fromkeys(probes) if len(probe) >= _PROBE // 2][:MOST_PROBES]
    if not probes:
        return
    holds = or_(*(func.instr(drawers.c.text, probe) > 0 for probe in probes))
    query = select(drawers.c.rid, drawers.c.id).where(drawers.c.seq.is_not(None), holds)
    yield from (id_ for rid, id_ in cx.execute(query.order_by(drawers.c.rid)) if rid not in without)


def _ids(cx: Connection, rids: Sequence[int]) -> Iterator[str]:
    for part in batches(rids):
        query = select(drawers.c.id).where(drawers.c.rid.in_(part), drawers.c.seq.is_not(None))
        yield from cx.execute(query.order_by(drawers.c.rid)).scalars()


def _outside(came_from: Mapping[str, Sequence[str]]) -> Iterator[Outside]:
    """Yield the files that are still there; of one inside an archive, the archive."""
    for name, texts in came_from.items():
        with suppress(OSError, ValueError):
            path = Path(name)
            if path.is_file():
                yield Outside(name, Finder(texts).look_into(path).part)
            else:
                yield from (Outside(str(above), None) for above in path.parents if above.is_file())


# Carrying on


def _begin(cx: Connection, rids: Sequence[int], reason: str, actor: str, now: int) -> tuple[int, int, int]:
    """Write down what goes; return the number of the purge, of drawers and of sources."""
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
    for prepared in palace.root.glob("wakeup.json*"):
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
