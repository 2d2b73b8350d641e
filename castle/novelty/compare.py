"""The exact comparison: some drawers with all those filed before them, a block at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castle.store.novelty import Known, Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 6


class Comparison:
    """The novelty of a batch of drawers: 1 - the greatest cosine to an earlier one, in [0, 1].

    Earlier means filed before. A drawer of a hidden kind is no earlier one for a drawer of an ordinary kind:
    a tool's output that repeats a file does not make the file stale. Equal texts have a cosine of 1, whatever
    the context they were embedded with. Every block of known drawers is to be shown once, in order of
    filing; of equally near ones the first counts.
    """

    def __init__(self, batch: Known) -> None:
        import numpy as np

        self.batch = batch
        self._best = np.full(len(batch), -np.inf)
        self._nearest = np.full(len(batch), -1, dtype=np.int64)

    def concerns(self, block: Known) -> bool:
        """Whether showing the block can change anything."""
        if not len(block) or not len(self.batch):
            return False
        return bool(block.rids[0] < self.batch.rids[-1]) or bool(self._outdated(block).any())

    def show(self, block: Known) -> list[Score]:
        """Compare with a block; return the new scores of its drawers that the batch turns out to precede.

        Those were scored before the batch was known, as happens when a drawer is restored or a large source
        is completed late. Their entries in ``block.scores`` are changed, too.
        """
        import numpy as np

        outdated = self._outdated(block)
        if not outdated.any():
            # What was filed after the whole batch is no earlier one for any of it.
            block = block.part(0, int(np.searchsorted(block.rids, self.batch.rids[-1])))
        if not len(block):
            return []
        alike = np.asarray(self.batch.units @ block.units.T)
        order = np.argsort(block.copies)
        copies = block.copies[order]
        first, last = (np.searchsorted(copies, self.batch.copies, side) for side in ("left", "right"))
        for row in np.flatnonzero(first < last):
            alike[row, order[first[row] : last[row]]] = 1.0
        changed = self._look_ahead(alike, block, outdated) if outdated.any() else []
        self._look_back(alike, block)
        return changed

    def finish(self) -> list[Score]:
        """Return the scores of the batch."""
        made = zip(self.batch.rids.tolist(), self._best.tolist(), self._nearest.tolist(), strict=True)
        return [
            Score(rid, novelty_of(best), near) if near >= 0 else Score(rid, 1.0, None)
            for rid, best, near in made
        ]

    def _look_back(self, alike: NDArray[np.float32], block: Known) -> None:
        """Take the nearest earlier ones of the block; what ``alike`` has of others is lost."""
        import numpy as np

        # Before this one, all are earlier for all of the batch.
        start = 0 if block.hidden.any() else int(np.searchsorted(block.rids, self.batch.rids[0]))
        if start < len(block):
            earlier = _precede(block.part(start, len(block)), self.batch)
            np.copyto(alike[:, start:], -np.inf, where=~earlier)
        column = alike.argmax(axis=1)
        best = alike[np.arange(len(self.batch)), column]
        better = best > self._best
        self._best[better] = best[better]
        self._nearest[better] = block.rids[column[better]]

    def _look_ahead(
        self, alike: NDArray[np.float32], block: Known, outdated: NDArray[np.bool_]
    ) -> list[Score]:
        import numpy as np

        prior = np.where(_precede(self.batch, block).T & outdated, alike, -np.inf)
        row = prior.argmax(axis=0)
        changed = []
        for index in np.flatnonzero(np.isfinite(prior.max(axis=0))):
            score = novelty_of(float(prior[row[index], index]))
            if score < block.scores[index]:
                block.scores[index] = score
                changed.append(Score(int(block.rids[index]), score, int(self.batch.rids[row[index]])))
        return changed

    def _outdated(self, block: Known) -> NDArray[np.bool_]:
        """Which drawers of the block have a score and were filed after the first of the batch."""
        import numpy as np

        scored: NDArray[np.bool_] = ~np.isnan(block.scores) & (block.rids > self.batch.rids[0])
        return scored


def novelty_of(cosine: float) -> float:
    """Return 1 - cosine, limited to [0, 1]."""
    return round(min(1.0, max(0.0, 1.0 - cosine)), _DIGITS)


def _precede(earlier: Known, later: Known) -> NDArray[np.bool_]:
    """Return, of shape (later, earlier), who counts as filed before whom."""
    before: NDArray[np.bool_] = earlier.rids[None, :] < later.rids[:, None]
    return before & (later.hidden[:, None] | ~earlier.hidden[None, :])
