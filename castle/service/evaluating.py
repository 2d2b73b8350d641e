"""Measuring how well the palace finds its own drawers again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle.arguments import legal
from castle.errors import NotFoundError, UsageError
from castle.records import Scope
from castle.service.searching import Searching

if TYPE_CHECKING:
    from castle.config.settings import SearchMode
    from castle.evaluation import Evaluation, Past, Progress

MOST_PROBES = 1000


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation as it was kept, what it found, and the comparable one before it, if any.

    ``unkept`` says why it was not kept, "" where it was.
    """

    kept: Past
    found: Evaluation
    before: Past | None
    unkept: str = ""


class Evaluating(Searching):
    """What asks the palace about itself."""

    def eval(
        self,
        *,
        probes: int = 50,
        seed: int = 42,
        wing: str | None = None,
        mode: SearchMode | None = None,
        progress: Progress | None = None,
    ) -> Evaluated:
        """Ask ``probes`` questions made of the palace's own drawers, and some that it cannot answer.

        The same palace and ``seed`` give the same questions. Changes no drawer; the numbers are kept beside
        them. Raises NotFoundError where there is nothing to make a question of.
        """
        from castle import __version__
        from castle.evaluation import draw, keep, measure, past
        from castle.evaluation.history import entry_of
        from castle.store.reading import listed

        if not 1 <= probes <= MOST_PROBES:
            raise UsageError(f"probes {probes} is not between 1 and {MOST_PROBES}")
        palace, wing = self._palace(), legal(wing)
        answerable, absent = draw(palace, probes, seed, wing)
        if not answerable:
            where = "the palace" if wing is None else f"wing {wing}"
            raise NotFoundError(f"{where} holds no drawer to make a question of: castle mine DIRECTORY")
        self.catch_up(progress)  # what is late would be measured; searches tell what could not be done
        found = measure(
            answerable, absent, lambda question: self.search(question, wing=wing, mode=mode), progress
        )
        earlier = past(self.root)
        with palace.ledger.read() as cx:
            total, _ = listed(cx, Scope(wing=wing), 1, 0)
        entry = entry_of(
            found,
            at=self._clock(),
            version=__version__,
            embedder=palace.identity.identity,
            mode=mode or self.settings.search_mode,
            reranker=self.settings.reranker,
            seed=seed,
            wing=wing,
            drawers=total,
        )
        unkept = ""
        try:
            keep(self.root, entry)
        except OSError as error:
            unkept = f"the numbers were not kept: {error}"
        before = next((one for one in reversed(earlier) if _alike(one, entry)), None)
        return Evaluated(entry, found, before, unkept)

    def eval_history(self) -> tuple[Past, ...]:
        """Return what earlier evaluations of the palace found, oldest first."""
        from castle.evaluation import past

        self._palace()
        return past(self.root)


def _alike(one: Past, other: Past) -> bool:
    return (one.seed, one.wing, one.probes) == (other.seed, other.wing, other.probes)
