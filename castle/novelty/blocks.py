"""Comparing with the whole palace: its vectors in blocks, kept in memory as far as a bound allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from castle.novelty.compare import Comparison
from castle.store.novelty import Known, Score, known_between
from castle.store.palace import Palace

BLOCK = 4096
"""Drawers compared with at once; with a batch of 1,024 that takes about 60 MB."""
HELD_BYTES = 256_000_000
"""Memory for vectors; what goes beyond is read again for every batch."""


class Blocks:
    """All drawers of the table, ``rids`` in order of filing, cut into blocks.

    Batches are to come in order of filing as well: then no score that was made here needs correcting by a
    later batch, and blocks may be held as they were read.
    """

    def __init__(self, palace: Palace, rids: Sequence[int]) -> None:
        self._palace = palace
        self._firsts = list(rids[::BLOCK])
        self._lasts = [rids[min(start + BLOCK, len(rids)) - 1] for start in range(0, len(rids), BLOCK)]
        self._held: dict[int, Known] = {}
        self._bytes = 0
        self._without_scores: set[int] = set()

    def compare(self, rids: Sequence[int], overdue: Callable[[], bool]) -> list[Score] | None:
        """Return the scores of a batch, and of others that it changes; None when the time is up before."""
        with self._palace.ledger.read() as cx:
            batch = known_between(cx, rids[0], rids[-1], only=rids)
        comparison = Comparison(batch)
        changed: list[Score] = []
        for number, first in enumerate(self._firsts):
            if overdue():
                return None
            if first > rids[-1] and number in self._without_scores:
                continue
            block = self._block(number)
            if comparison.concerns(block):
                changed += comparison.show(block)
        return comparison.finish() + changed

    def _block(self, number: int) -> Known:
        if number in self._held:
            return self._held[number]
        import numpy as np

        with self._palace.ledger.read() as cx:
            block = known_between(cx, self._firsts[number], self._lasts[number])
        if np.isnan(block.scores).all():
            self._without_scores.add(number)
        if self._bytes + block.bytes <= HELD_BYTES:
            self._held[number] = block
            self._bytes += block.bytes
        return block
