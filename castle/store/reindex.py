"""Reindexing: a table of vectors is built beside the one in force, from the ledger, and takes its place.

Others file and search meanwhile, with the table in force. What is built has its own watermark, and what is
embedded goes into the vector cache: a run that ends early, however it ends, is gone on with by the next. Once
the new table has reached the head of the ledger, one short transaction puts it in force.
"""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from castle.clock import to_iso
from castle.errors import PalaceBusyError, PalaceError
from castle.models.base import Embedder, EmbedderIdentity
from castle.records import Scope
from castle.store.catchup import VECTOR_BATCH, cached_vectors, fits, input_hash, vectors_for
from castle.store.locks import FileLock
from castle.store.palace import Palace
from castle.store.projection import ProjectionRow, ProjectionUnavailable, Watermark
from castle.store.reading import changed_rows, count_changed
from castle.store.schema import drawers
from castle.store.spaces import LOCK as VECTORS_LOCK
from castle.store.spaces import (
    RETENTION_SECONDS,
    TABLES_LOCK,
    Building,
    Named,
    Space,
    building,
    clear_waste,
    in_force,
    put_in_force,
    set_building,
    table_name,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the number of drawers done and the number there are to do."""

LOCK = "reindex"
LAPS = 10
"""Times that it is brought up to date under the lock, before what remains is left to the next search."""
RESETS = 3
"""Damaged tables that are begun again before it is said."""
SAMPLE = 8
"""Drawers that are embedded for an estimate, and read again before a table is put in force."""
_SAME = 1e-3


@dataclass(frozen=True, slots=True)
class ReindexPlan:
    """What a reindex would do: ``done`` of ``drawers`` are in the new table from a run before.

    ``seconds`` is an estimate for the rest, from embedding a few of them.
    """

    before: EmbedderIdentity
    after: EmbedderIdentity
    drawers: int
    done: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex did. ``behind`` counts the drawers that the next search or filing embeds.

    ``kept_until`` is when the table before may be deleted, with its cached vectors; the next filing does it.
    """

    before: EmbedderIdentity
    after: EmbedderIdentity
    drawers: int
    behind: int
    seconds: float
    kept_until: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A reindex that was begun: ``done`` of ``drawers`` have their new vector.

    ``pid`` and ``host`` are those of the process that is ``at_work`` on it since ``started_at``, or was last.
    """

    after: EmbedderIdentity
    drawers: int
    done: int
    at_work: bool
    pid: int
    host: str
    started_at: int

    def told(self) -> str:
        """Return a sentence for people: who is at it, or what goes on with it."""
        what = f"new vectors of {self.after.name} ({self.after.dim}): {self.done:,} of {self.drawers:,} made"
        if self.at_work:
            return f"{what}, process {self.pid} on {self.host} is at it since {to_iso(self.started_at)[:19]}Z"
        name = shlex.quote(self.after.name)
        return f"{what}, then it was stopped; `castle reindex --embedder {name}` goes on"


class _Gone(Exception):
    """Somebody has thrown away what was being built."""


def plan(palace: Palace, embedder: Embedder) -> ReindexPlan:
    """Say what a reindex for this embedder would do; changes nothing.

    Raises what ``reindex`` raises before it begins, and ModelError.
    """
    _taken(palace).release()
    with palace.ledger.read() as cx:
        before, total = in_force(cx), count_changed(cx, 0)
    begun = unfinished(palace)
    done = begun.done if begun is not None and begun.after == embedder.identity else 0
    each = _seconds_each(palace, embedder) if total > done else 0.0
    return ReindexPlan(before.identity, embedder.identity, total, done, each * (total - done))


def unfinished(palace: Palace) -> Unfinished | None:
    """Return the reindex that is at work, or was stopped before its end; None when there is none."""
    with palace.ledger.read() as cx:
        built = building(cx)
        if built is None:
            return None
        total = count_changed(cx, 0)
    table = Space(palace.root, built.space, _no_embedder).vectors
    try:
        mark = table.watermark()
        with palace.ledger.read() as cx:
            left = count_changed(cx, mark.seq) if mark is not None and fits(palace, mark) else total
    finally:
        table.close()
    lock = palace.lock(LOCK)
    at_work = not lock.try_acquire() and lock.reason.startswith("held")
    lock.release()
    return Unfinished(
        built.space.identity, total, total - left, at_work, built.pid, built.host, built.started_at
    )


def _no_embedder() -> Embedder:
    raise AssertionError("a table is looked at without its embedder")


def reindex(palace: Palace, embedder: Embedder, progress: Progress | None = None) -> Reindexed:
    """Build the vectors of every drawer with this embedder, and put them in force.

    With the embedder in force it makes every vector anew. ``palace`` asks for no other embedder than its new
    one from then on. Raises PalaceBusyError when another process is at
    it, PalaceError when the palace cannot be written or the disk is full, and ModelError; what was done by
    then is kept.
    """
    lock = _taken(palace)
    try:
        return _Run(palace, embedder, progress or (lambda *_: None)).go()
    finally:
        lock.release()


class _Run:
    """One run, under the lock of reindexing."""

    def __init__(self, palace: Palace, embedder: Embedder, tell: Progress) -> None:
        self._palace = palace
        self._embedder = embedder
        self._tell = tell
        self._resets = 0
        self._started = time.monotonic()

    def go(self) -> Reindexed:
        """Build, and begin again when somebody throws away what was built."""
        while True:
            self._built = self._begin()
            self._space = Space(self._palace.root, self._built.space, lambda: self._embedder)
            try:
                return self._build()
            except _Gone:
                continue
            finally:
                self._space.close()

    def _begin(self) -> Building:
        """Record what is built: what a run before began for this embedder, or a new table."""
        palace = self._palace
        wanted = self._embedder.identity
        with palace.ledger.write() as cx:
            found = building(cx)
            present = in_force(cx)
            if found is None or found.space.identity != wanted:
                name = f"{table_name(Named(wanted))}_{secrets.token_hex(4)}"
                found = Building(Named(wanted, name), present.identity.identity == wanted.identity, 0, "", 0)
            found = replace(
                found, pid=os.getpid(), host=socket.gethostname(), started_at=palace.ledger.clock()
            )
            set_building(cx, found)
        with palace.exclusively(VECTORS_LOCK):
            palace.clear_the_way()
            clear_waste(palace)
        return found

    def _build(self) -> Reindexed:
        palace = self._palace
        with palace.ledger.read() as cx:
            total, before = count_changed(cx, 0), in_force(cx).identity
        self._advance("embedding", total)
        behind = 0
        with palace.exclusively(VECTORS_LOCK), palace.exclusively("novelty"):
            for lap in range(LAPS):
                self._advance("catching up", 0)
                late = self._switch(last=lap == LAPS - 1)
                if late is not None:
                    behind = late
                    break
        now = palace.ledger.clock()
        return Reindexed(
            before,
            self._built.space.identity,
            total,
            behind,
            time.monotonic() - self._started,
            now + RETENTION_SECONDS * 1_000_000,
        )

    def _advance(self, phase: str, total: int) -> None:
        """Bring the new table up to the head that the ledger has at the last of the batches.

        ``total`` drawers are told of, 0 for none.
        """
        mark = self._mark()
        with self._palace.ledger.read() as cx:
            done = total - count_changed(cx, mark.seq) if total else 0
        while True:
            with self._palace.ledger.read() as cx:
                rows = changed_rows(cx, mark.seq, VECTOR_BATCH)
            if not rows:
                return

            def told(count: int, before: int = done) -> None:
                if total:
                    self._tell(phase, min(before + count, total), total)

            matrix = vectors_for(self._palace, self._space, rows, told, afresh=self._built.afresh)
            reached = Watermark(self._palace.ledger.lineage(rows[-1].seq), rows[-1].seq)
            with self._palace.exclusively(TABLES_LOCK):
                self._must_stand()
                # Whoever throws tables away holds the same lock: nothing is added to one that is gone.
                stands = self._mark()
                if stands != mark:
                    mark = stands
                    continue
                try:
                    self._space.vectors.apply(rows, matrix, reached)
                except ProjectionUnavailable:
                    mark = self._again()
                    continue
            mark = reached
            done += len(rows)
            if len(rows) < VECTOR_BATCH:
                return

    def _mark(self) -> Watermark:
        """Return how far the table is; one that is from another time of the ledger is begun again."""
        mark = self._space.vectors.watermark()
        if mark is not None and fits(self._palace, mark):
            return mark
        self._space.vectors.reset()
        return Watermark(self._palace.ledger.lineage(0), 0)

    def _again(self) -> Watermark:
        """Begin a damaged table again, but not for ever."""
        self._resets += 1
        if self._resets > RESETS:
            raise PalaceError(
                f"{self._space.vectors.directory} was damaged {RESETS} times while it was built; "
                "nothing was changed, searches go on with the vectors there were"
            )
        self._space.vectors.reset()
        return self._mark()

    def _must_stand(self) -> None:
        with self._palace.ledger.read() as cx:
            found = building(cx)
        if found is None or found.space != self._built.space:
            raise _Gone

    def _switch(self, *, last: bool) -> int | None:
        """Put the table in force, unless drawers have come meanwhile; return how many it lacks.

        The ``last`` time it is put in force all the same: a table that is late is caught up by searches.
        """
        self._must_hold_samples()
        mark = self._mark()
        with self._palace.ledger.write() as cx:
            found = building(cx)
            if found is None or found.space != self._built.space:
                raise _Gone
            late = count_changed(cx, mark.seq)
            if late and not last:
                return None
            if not late and not self._is_whole(cx):
                self._space.vectors.reset()
                raise PalaceError(
                    "the new table does not hold every drawer; nothing was changed, run the command again"
                )
            put_in_force(cx, self._built.space, self._palace.ledger.clock())
        self._palace.want(None)
        return late

    def _is_whole(self, cx: Connection) -> bool:
        wanted = cx.execute(
            select(func.count()).where(drawers.c.seq.is_not(None), drawers.c.state != "forgotten")
        ).scalar_one()
        if not self._space.vectors.directory.exists():
            return not wanted
        return self._space.vectors.count() == wanted

    def _must_hold_samples(self) -> None:
        """Raise PalaceError unless a few drawers are found by their own vectors."""
        rows = [row for row in _sample(self._palace) if row.state != "forgotten"]
        mark = self._mark()
        rows = [row for row in rows if row.seq <= mark.seq]
        made = cached_vectors(self._palace, [input_hash(row) for row in rows], self._space.identity)
        held = self._space.vectors.vectors_of([row.id for row in rows]) if rows else {}
        for row in rows:
            unit, own = made.get(input_hash(row)), held.get(row.id)
            if unit is None:
                continue
            scope = Scope(kinds=(row.kind,), source=row.source, history=True)
            found = self._space.vectors.search(unit, scope, 1)
            if own is None or abs(own - unit).max() > _SAME or not found or found[0].score < 1 - _SAME:
                self._space.vectors.reset()
                raise PalaceError(
                    f"drawer {row.id} is not found in the new table; nothing was changed, "
                    "run the command again"
                )


def _taken(palace: Palace) -> FileLock:
    """Take the lock of reindexing; raises PalaceError, and PalaceBusyError that says who has it."""
    if why := palace.ledger.unwritable():
        raise PalaceError(f"{why}: its vectors cannot be made anew")
    lock = palace.lock(LOCK)
    if lock.try_acquire():
        return lock
    if not lock.reason.startswith("held"):
        raise PalaceError(f"the vectors cannot be made anew: {lock.reason}")
    with palace.ledger.read() as cx:
        found = building(cx)
    who = (
        f"process {found.pid} on {found.host} makes the vectors of {found.space.identity.name} "
        f"since {to_iso(found.started_at)}"
        if found
        else "another process has just begun to make vectors anew"
    )
    raise PalaceBusyError(f"{who}: wait for it, or stop it; what it has done is kept")


def _sample(palace: Palace) -> Sequence[ProjectionRow]:
    """Return a few drawers from all over the ledger."""
    head = palace.ledger.head()
    found: dict[str, ProjectionRow] = {}
    with palace.ledger.read() as cx:
        for number in range(SAMPLE):
            found.update((row.id, row) for row in changed_rows(cx, head * number // SAMPLE, 1))
    return list(found.values())


def _seconds_each(palace: Palace, embedder: Embedder) -> float:
    """Return what embedding a drawer takes, once the model is warm."""
    texts = [row.embedded for row in _sample(palace) if row.state != "forgotten"]
    if not texts:
        return 0.0
    embedder.embed_documents(texts[:1])
    started = time.monotonic()
    embedder.embed_documents(texts)
    return (time.monotonic() - started) / len(texts)
