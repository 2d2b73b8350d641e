"""Scoring: bringing every current drawer's novelty up to date, in pieces that can be interrupted.

Nothing here needs a model: a drawer whose vector has not been made yet waits. One process at a time works,
under a lock of its own; whatever it has stored when it ends, stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from castle.errors import CastleError, PalaceError
from castle.novelty.blocks import Blocks
from castle.novelty.nearby import Nearby
from castle.store import novelty as store
from castle.store.catchup import behind, catch_up_vectors, input_hash
from castle.store.palace import POLL_SECONDS, Palace
from castle.store.projection import Watermark
from castle.store.reading import changed_rows

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it is, and how much there is."""

EXACT_DRAWERS = 100_000
"""Drawers up to which a hurried run compares exactly; beyond, it asks the table of vectors."""
BATCH = 1024
HASTY_BATCH = 64
FEW = 8
"""Drawers that are sooner scored by asking the table of vectors for each than by comparing."""
HASTY_PATIENCE = 0.05
CHANGES = 1000
"""Changes of the ledger taken in by one transaction."""
TIME_IS_UP = "time is up"
NO_VECTORS = "their vectors have not been made yet"


@dataclass(frozen=True, slots=True)
class NoveltyReport:
    """What a run came to: of all current ``drawers``, ``pending`` still have no score, for the ``reason``."""

    drawers: int
    scored: int
    pending: int
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether every current drawer has a score."""
        return not self.pending


def update(
    palace: Palace, *, deadline: float | None = None, progress: Progress | None = None
) -> NoveltyReport:
    """Score what is new or has changed since the last run.

    ``deadline`` (monotonic seconds) makes it stop early; without one it waits for another process that is at
    it. Raises PalaceError when the palace cannot be written, PalaceBusyError when others kept it too long.
    """
    lock = palace.lock("novelty")
    while not lock.try_acquire():
        if not lock.reason.startswith("held"):
            raise PalaceError(f"novelty cannot be brought up to date: {lock.reason}")
        if deadline is not None:
            return _report(palace, 0, "another process is at it")
        time.sleep(POLL_SECONDS)
    try:
        run = _Run(palace, deadline, progress)
        run.go()
        return _report(palace, run.scored, run.reason)
    finally:
        lock.release()


def refresh(palace: Palace, seconds: float) -> None:
    """Bring novelty up to date as far as ``seconds`` go; a palace that cannot be written stays as it is."""
    with suppress(CastleError):
        update(palace, deadline=time.monotonic() + seconds)


def backfill(palace: Palace, progress: Progress | None = None) -> NoveltyReport:
    """Score every drawer, making the vectors that are missing first; an interrupted one goes on."""

    def embedded(done: int, total: int) -> None:
        if progress is not None:
            progress("vectors", done, total)

    catch_up_vectors(palace, progress=embedded)
    return update(palace, progress=progress)


class _Run:
    """One run, under the lock."""

    def __init__(self, palace: Palace, deadline: float | None, progress: Progress | None) -> None:
        self.scored = 0
        self.reason = ""
        self._palace = palace
        self._deadline = deadline
        self._progress = progress

    def go(self) -> None:
        """Take in the changes of the ledger, then score what waits."""
        if not self._take_in():
            self.reason = TIME_IS_UP
            return
        with self._palace.ledger.read() as cx:
            waiting = store.waiting(cx)
        if not waiting:
            return
        method = self._method(waiting)
        if method is None:
            self.reason = NO_VECTORS
            return
        asking = isinstance(method, Nearby)
        size = 1 if asking else BATCH if self._deadline is None else HASTY_BATCH
        done = 0
        while done < len(waiting):
            started = time.monotonic()
            batch = waiting[done : done + size]
            made = None if self._overdue() else method.compare(batch, self._overdue)
            if made is None:
                self.reason = TIME_IS_UP
                return
            with self._palace.ledger.write(self._patience()) as cx:
                store.put(cx, made)
            done += len(batch)
            self.scored += len({score.rid for score in made}.intersection(batch))
            if self._progress is not None:
                self._progress("novelty", done, len(waiting))
            if not asking:
                size = self._affordable(size, time.monotonic() - started)

    def _method(self, waiting: Sequence[int]) -> Nearby | Blocks | None:
        """Return how to score: reading the whole palace does not pay for a few drawers that came last.

        A table of vectors that is late would miss some of those filed before.
        """
        with self._palace.ledger.read() as cx:
            hurried = self._deadline is not None and store.size(cx) > EXACT_DRAWERS
            few = len(waiting) <= FEW and not store.scored_after(cx, waiting[0])
        if (hurried or few) and not behind(self._palace, self._palace.vectors):
            return Nearby(self._palace)
        if hurried:
            return None
        with self._palace.ledger.read() as cx:
            return Blocks(self._palace, store.registered(cx))

    def _take_in(self) -> bool:
        """Register what the ledger holds; return False when the time was up before the end."""
        ledger = self._palace.ledger
        with ledger.read() as cx:
            mark = store.reached(cx)
            if mark is not None and mark.seq == ledger.head() and store.missing(cx):
                mark = None
        fits = mark is not None and mark.seq <= ledger.head() and mark.epoch == ledger.lineage(mark.seq)
        if mark is None or not fits:
            mark = Watermark(ledger.lineage(0), 0)
            with ledger.write(self._patience()) as cx:
                store.start_over(cx, mark)
        with ledger.read() as cx:
            orphaned = store.orphans(cx)
        if orphaned:
            with ledger.write(self._patience()) as cx:
                store.release_orphans(cx)
        while not self._overdue():
            with ledger.read() as cx:
                rows = changed_rows(cx, mark.seq, CHANGES)
            if not rows:
                return True
            inputs = {row.id: input_hash(row) for row in rows if row.state == "current"}
            away = [row.id for row in rows if row.state != "current"]
            mark = Watermark(ledger.lineage(rows[-1].seq), rows[-1].seq)
            with ledger.write(self._patience()) as cx:
                store.register(cx, inputs, away)
                store.reach(cx, mark)
        return False

    def _overdue(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _patience(self) -> float | None:
        return None if self._deadline is None else max(HASTY_PATIENCE, self._deadline - time.monotonic())

    def _affordable(self, size: int, took: float) -> int:
        """Return how many drawers to take next, so that about half of the time that is left will do."""
        if self._deadline is None:
            return BATCH
        left = self._deadline - time.monotonic()
        return max(HASTY_BATCH, min(BATCH, int(size / max(took, 1e-3) * left / 2)))


def _report(palace: Palace, scored: int, reason: str) -> NoveltyReport:
    with palace.ledger.read() as cx:
        total, with_score = store.counts(cx)
    pending = total - with_score
    return NoveltyReport(total, scored, pending, (reason or NO_VECTORS) if pending else "")
