"""What works and what does not, and the sealed text that only a person at a terminal may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castle.arguments import legal, user
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.doctor import Examination
    from castle.store.reveal import Revealed


class Doctoring(Base):
    """What examines the palace and everything around it."""

    def doctor(self, *, online: bool = False, trouble: str = "") -> Examination:
        """Check what the palace and the ways into it promise; changes nothing.

        ``online`` asks services beyond this machine, too. ``trouble`` is why the user's settings could not be
        read, where this object goes by the defaults for that reason.
        """
        from castle.doctor import Context, examine

        return examine(Context(self.settings, self._palace, trouble, online, clock=self._clock))

    def find_sealed(self, id: str) -> Revealed:
        """Return the exact text of a drawer with sealed spans, for a person at a terminal.

        Nothing of it may be shown before ``note_reveal``. Raises NotFoundError, and RefusedError for a drawer
        with nothing sealed.
        """
        from castle.store.reveal import find_sealed

        return find_sealed(self._palace().ledger, legal(id))

    def note_reveal(self, revealed: Revealed, *, actor: str | None = None) -> None:
        """Note in the ledger who is about to see the exact text of which drawer."""
        from castle.store.reveal import note_reveal

        note_reveal(self._palace().ledger, revealed, actor or user())
