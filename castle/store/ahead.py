"""Vectors of what has been filed, made while more is being filed and words are indexed.

A model on ONNX Runtime leaves Python to others, so a thread of its own makes them. They go into the ledger's
cache, where ``catch_up_vectors`` finds them: what is not made here, for whatever reason, is made there.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from types import TracebackType

from castle.errors import CastleError
from castle.models.encoder import OnnxEmbedder
from castle.store.catchup import halves_for, input_hash
from castle.store.palace import Palace
from castle.store.projection import ProjectionRow
from castle.store.reading import changed_rows
from castle.store.spaces import LOCK

ROWS = 1024
"""Drawers that are read at once."""
PART = 64
"""Texts that are embedded at once: whoever ends this waits for no more."""


class Ahead:
    """Makes vectors in the background until the ``with`` block ends.

    It holds the lock of the vectors as long as it is at work, as everybody who makes some.
    """

    def __init__(self, palace: Palace) -> None:
        self._palace = palace
        self._reached = palace.ledger.head()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="castle-ahead")
        self._work: Future[None] | None = None
        self._stopped = Event()

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._pool.shutdown()
        if kind is None and self._work is not None:
            self._work.result()

    def go_on(self) -> None:
        """Take up what has been committed since, unless that is being done."""
        if not self._stopped.is_set() and (self._work is None or self._work.done()):
            self._work = self._pool.submit(self._embed)

    def _embed(self) -> None:
        # Whatever is wrong is met again, and told, by whoever brings the vectors up to date.
        with suppress(CastleError, _Enough):
            space, lock = self._palace.space, self._palace.lock(LOCK)
            if not isinstance(space.embedder, OnnxEmbedder) or not lock.try_acquire():
                return
            try:
                while rows := self._rows():
                    texts = {input_hash(row): row.embedded for row in rows if row.state != "forgotten"}
                    halves_for(self._palace, space, texts, self._go_on_or_end, part=PART)
                    self._reached = rows[-1].seq
            finally:
                lock.release()

    def _rows(self) -> list[ProjectionRow]:
        with self._palace.ledger.read() as cx:
            return changed_rows(cx, self._reached, ROWS)

    def _go_on_or_end(self, done: int) -> None:
        if self._stopped.is_set():
            raise _Enough


class _Enough(Exception):
    """Nobody waits for more."""
