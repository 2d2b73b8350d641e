"""Purging: what is destroyed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castle.arguments import legal, one_of, user
from castle.errors import RefusedError, UsageError
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.store.purge import Purged
    from castle.store.purge_plan import PurgePlan

MOST_REASON = 500


class Purging(Base):
    """What destroys words, because a person wants that."""

    def plan_purge(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        wing: str | None = None,
        copies: bool = False,
    ) -> PurgePlan:
        """Say what ``purge`` would destroy and what it would leave; changes nothing. Raises NotFoundError."""
        from castle.store.purge_plan import plan

        one_of(id, source, wing)
        return plan(self._palace(), id_=id, source=source, wing=legal(wing), copies=copies)

    def purge(
        self,
        id: str | None = None,
        *,
        reason: str,
        source: str | None = None,
        wing: str | None = None,
        copies: bool = False,
        actor: str | None = None,
    ) -> Purged:
        """Destroy a drawer, a source or a wing, with everything that was made of it; nothing brings it back.

        ``copies`` destroys other drawers with the same bytes, too. The text is not filed again. Raises
        NotFoundError, UsageError without a reason, RefusedError for a read-only palace.
        """
        from castle.store.purge import purge

        one_of(id, source, wing)
        why = " ".join(legal(reason).split())
        if not why or len(why) > MOST_REASON:
            raise UsageError(f"a purge needs a reason of at most {MOST_REASON} characters, without the text")
        done = purge(
            self._palace(),
            id_=id,
            source=source,
            wing=legal(wing),
            copies=copies,
            reason=why,
            actor=actor or user(),
        )
        if not done.unfinished:
            self._render()
        return done

    def finish_purges(self) -> int:
        """Finish purges that were begun and not done, such as one that was killed; return how many.

        Raises RefusedError for a palace that cannot be written.
        """
        from castle.store.purge import finish

        if why := self._palace().ledger.unwritable():
            raise RefusedError(f"{why}: nothing can be purged")
        count = finish(self._palace())
        if count:
            self._refresh()
            self._render()
        return count
