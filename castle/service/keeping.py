"""Keeping the palace: its state, its proof, its repair, and what is put out of sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castle import config
from castle.arguments import legal, one_of, user
from castle.records import Finding
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.novelty import NoveltyReport
    from castle.novelty.scoring import Progress as NoveltyProgress
    from castle.store.status import Status
    from castle.store.verify import Progress as VerifyProgress


class Keeping(Base):
    """What looks after the palace."""

    def status(self) -> Status:
        """Return what the palace holds, from counts."""
        from castle.store.status import status

        return status(self._palace())

    def verify(self, progress: VerifyProgress | None = None) -> list[Finding]:
        """Check the ledger against its hashes and every projection against the ledger."""
        from castle.store.verify import verify

        return verify(self._palace(), progress)

    def repair(self, progress: VerifyProgress | None = None) -> list[Finding]:
        """Build damaged or incomplete indexes again from the ledger; return what verification says then."""
        from castle.store.repair import repair

        return repair(self._palace(), progress)

    def backfill_novelty(self, progress: NoveltyProgress | None = None) -> NoveltyReport:
        """Score the novelty of every drawer that has none; an interrupted call goes on where it was."""
        from castle.novelty import backfill

        return backfill(self._palace(), progress)

    def forget(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        wing: str | None = None,
        actor: str | None = None,
    ) -> int:
        """Put a drawer, a source or a wing out of sight until it is restored; return how many drawers.

        A forgotten source is not filed again. Raises NotFoundError.
        """
        from castle.store.places import forget

        one_of(id, source, wing)
        count = forget(self._palace().ledger, id_=id, source=source, wing=legal(wing), actor=actor or user())
        self._refresh()
        self._render()
        return count

    def restore(self, id: str | None = None, *, source: str | None = None, wing: str | None = None) -> int:
        """Bring back what was forgotten; return how many drawers."""
        from castle.store.places import restore

        one_of(id, source, wing)
        count = restore(self._palace().ledger, id_=id, source=source, wing=legal(wing))
        self._refresh()
        self._render()
        return count

    def rename_wing(self, old: str, new: str, *, merge: bool = False) -> int:
        """Give a wing another name; return how many drawers moved.

        Raises RefusedError when there is one called ``new`` already and ``merge`` is false.
        """
        from castle.store.places import rename_wing

        count = rename_wing(self._palace().ledger, old, config.check_name("wing", new), merge=merge)
        self._refresh()
        self._render()
        return count
