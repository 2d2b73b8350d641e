"""Asking the table of vectors: one drawer at a time, without reading the whole palace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from castle.novelty.compare import novelty_of
from castle.records import Scope
from castle.store.novelty import Score, Standing, first_copy, kinds, known_between, standing, tag
from castle.store.palace import Palace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NEIGHBOURS = 256
_MORE = 8


@dataclass(frozen=True, slots=True)
class Near:
    """A drawer near another; ``cosine`` in [-1, 1]."""

    id: str
    cosine: float
    other: Standing


class Nearby:
    """Scores single drawers by the nearest ones in the table of vectors.

    A drawer's own score is as good as the table's search, which is exact for as long as it has no index. Of
    the drawers that were filed later and scored before, only those among the nearest are corrected, and no
    hidden ones by an ordinary one.
    """

    def __init__(self, palace: Palace) -> None:
        self._palace = palace

    def compare(self, rids: Sequence[int], overdue: Callable[[], bool]) -> list[Score] | None:
        """Return the scores of a batch, and of others that it changes; None when the time is up before."""
        with self._palace.ledger.read() as cx:
            batch = known_between(cx, rids[0], rids[-1], only=rids)
        made: dict[int, Score] = {}
        rows = zip(batch.rids, batch.hidden, batch.copies, batch.units, strict=True)
        for rid, hidden, copies, unit in rows:
            if overdue():
                return None
            for score in self.score(int(rid), bool(hidden), int(copies), unit):
                before = made.get(score.rid)
                if before is None or score.score < before.score:
                    made[score.rid] = score
        return list(made.values())

    def score(self, rid: int, hidden: bool, copies: int, unit: NDArray[np.float32]) -> list[Score]:
        """Return the score of one drawer, and of later ones that it is nearer to than any before."""
        scope = Scope(kinds=self._kinds if hidden else ())
        found = self.around(unit, copies, scope, rid, 1)
        with self._palace.ledger.read() as cx:
            copy = first_copy(cx, rid)
        earlier = [near for near in found if near.other.rid < rid]
        best = max(earlier, key=lambda near: (near.cosine, -near.other.rid), default=None)
        if copy is not None:
            own = Score(rid, 0.0, copy)
        else:
            own = Score(rid, novelty_of(best.cosine), best.other.rid) if best else Score(rid, 1.0, None)
        return [
            own,
            *(
                Score(near.other.rid, novelty_of(near.cosine), rid)
                for near in found
                if _ahead(near, own, hidden)
            ),
        ]

    def around(
        self, unit: NDArray[np.float32], copies: int, scope: Scope, rid: int, count: int
    ) -> list[Near]:
        """Return the nearest drawers in scope, so many that ``count`` filed before ``rid`` are among them.

        ``copies`` is the tag of the text; drawers with an equal text have a cosine of 1.
        """
        limit = _NEIGHBOURS
        while True:
            matches = self._palace.vectors.search(unit, scope, limit)
            with self._palace.ledger.read() as cx:
                rows = standing(cx, [match.id for match in matches])
            found = [
                Near(
                    match.id,
                    1.0 if tag(bytes.fromhex(match.sha256)) == copies else match.score,
                    rows[match.id],
                )
                for match in matches
                if match.id in rows and rows[match.id].rid != rid
            ]
            if len(matches) < limit or sum(near.other.rid < rid for near in found) >= count:
                return found
            limit *= _MORE

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        with self._palace.ledger.read() as cx:
            return kinds(cx)


def _ahead(near: Near, own: Score, hidden: bool) -> bool:
    """Whether a drawer that was filed later, and scored before, is nearer to this one than to any other."""
    other = near.other
    if other.rid <= own.rid or other.score is None or (hidden and not other.hidden):
        return False
    return novelty_of(near.cosine) < other.score
