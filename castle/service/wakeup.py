"""What an agent is told unasked: wake-ups, recall beside a prompt, and the pins that put a drawer first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle.answers import Found, Page, to_found
from castle.arguments import legal, user
from castle.errors import UsageError
from castle.service.reading import Reading
from castle.service.searching import Searching

if TYPE_CHECKING:
    from castle.wakeup import WakeUp

SCORING_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Pinned:
    """A pinned drawer; it is shown at wake-up while its state is current."""

    drawer: Found
    pinned_at: int
    pinned_by: str


@dataclass(frozen=True, slots=True)
class Pinning:
    """What pinning or unpinning came to: whether the drawer is pinned now, and whether that is new."""

    id: str
    pinned: bool
    changed: bool


class Waking(Reading, Searching):
    """What brings back without being asked."""

    def wake_up(self, wing: str | None = None) -> WakeUp:
        """Return who the user is and the essentials of a wing, or of all: what an agent begins with.

        Of 900 tokens at most, and of 600 at least where so much is filed. Pinned drawers come first, then
        what is recent, new and often used, one topic after the other.
        """
        from castle.wakeup import wake_up
        from castle.wakeup.prerendered import knows_identity

        self._write_uses()
        palace = self._palace()
        found = wake_up(palace, self.settings, legal(wing) or None, scoring=SCORING_SECONDS)
        if not knows_identity(palace, self.settings):
            self._render()
        return found

    def recall(
        self, *, wing: str | None = None, room: str | None = None, limit: int = 10, offset: int = 0
    ) -> Page:
        """Return one page of what a wing or a room holds, the newest first."""
        from castle.store.reading import addresses, drawers_by_id
        from castle.store.use import newest

        if limit < 1 or offset < 0:
            raise UsageError(f"limit {limit} has to be 1 at least, offset {offset} 0 at least")
        with self._palace().ledger.read() as cx:
            total, ids = newest(cx, legal(wing) or None, legal(room) or None, limit, offset)
            found, where = drawers_by_id(cx, ids), addresses(cx, ids)
            return Page(total, offset, drawers=tuple(to_found(found[id_], where[id_]) for id_ in ids))

    def recall_for_prompt(self, prompt: str, *, cwd: str | None = None, max_tokens: int = 300) -> str:
        """Return what the palace knows of a prompt, wrapped as recalled; "" where nothing is sure to help.

        ``cwd`` is where the agent works: what was filed from there goes first. What was written within the
        last two minutes is left out. Never more than ``max_tokens`` tokens.
        """
        from castle.wakeup.prompt import recalled

        return recalled(
            self._palace(), self.settings, self._engines(), prompt, cwd=cwd, max_tokens=max_tokens
        )

    def pin(self, id: str, *, actor: str | None = None) -> Pinning:
        """Put a drawer first at every wake-up, until it is unpinned.

        Raises NotFoundError, and RefusedError for a drawer that is superseded or forgotten.
        """
        from castle.store.use import pin

        full, changed = pin(self._palace().ledger, id, actor or user())
        self._render()
        return Pinning(full, True, changed)

    def unpin(self, id: str) -> Pinning:
        """Take a pin away. Raises NotFoundError where there is no such drawer."""
        from castle.store.use import unpin

        full, changed = unpin(self._palace().ledger, id)
        self._render()
        return Pinning(full, False, changed)

    def pins(self, *, wing: str | None = None) -> list[Pinned]:
        """Return the pinned drawers, the latest pin first."""
        from castle.store.reading import addresses, drawers_by_id
        from castle.store.use import pinned

        with self._palace().ledger.read() as cx:
            found = pinned(cx, legal(wing) or None)
            ids = [pin.id for pin in found]
            known, where = drawers_by_id(cx, ids), addresses(cx, ids)
            return [
                Pinned(to_found(known[pin.id], where[pin.id]), pin.pinned_at, pin.pinned_by) for pin in found
            ]
