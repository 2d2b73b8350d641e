"""Notes: texts that are filed one by one, and whether a text is filed already."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from castle.arguments import user
from castle.errors import PalaceBusyError, UsageError
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.mine.duplicates import Duplicates
    from castle.mine.notes import Added, Updated

HASTE_SECONDS = 0.5
MOST_COMPARED = 1_000_000


class Notes(Base):
    """What files a text that somebody gives, and changes it."""

    def add(
        self,
        text: str,
        *,
        wing: str,
        room: str,
        source_file: str | None = None,
        added_by: str | None = None,
    ) -> Added:
        """File a text word for word, as a note in a room of a wing; the same text there is filed once.

        ``source_file`` says where it comes from, ``added_by`` who gives it. Raises UsageError for a blank
        text, ConfigError for a wing or room that cannot be one.
        """
        from castle.mine.notes import add

        found = add(
            self._palace(create=True),
            text,
            wing=wing,
            room=room,
            source_file=source_file or "",
            added_by=added_by or user(),
            halls=self.settings.hall_keywords,
        )
        if not found.reason:
            self._hasten()
            self._render()
        return found

    def update(
        self,
        id: str,
        text: str | None = None,
        *,
        wing: str | None = None,
        room: str | None = None,
        expected_sha256: str | None = None,
        added_by: str | None = None,
    ) -> Updated:
        """Give a note another text, as its next revision, or another place; what it said before is kept.

        The text replaces the drawer's; of a note of several drawers ``expected_sha256`` says whether that or
        the whole note is replaced: it must be the hash of what is filed there. Raises RefusedError when it is
        not, for a drawer that is superseded or forgotten, and for one that does not come from a note.
        """
        from castle.mine.notes import update

        found = update(
            self._palace(),
            id,
            text,
            wing=wing,
            room=room,
            expected_sha256=expected_sha256,
            added_by=added_by or user(),
            halls=self.settings.hall_keywords,
        )
        if not found.noop:
            self._hasten()
            self._render()
        return found

    def check_duplicate(self, text: str, *, threshold: float = 0.9) -> Duplicates:
        """Say whether a text is filed already: word for word, or nearly so by the cosine of the embedder.

        ``threshold`` in [0, 1] is the least similarity of a match. Changes nothing.
        """
        from castle.mine.duplicates import check_duplicate

        if len(text) > MOST_COMPARED:
            raise UsageError(f"the text has {len(text):,} characters, {MOST_COMPARED:,} are the most")
        return check_duplicate(self._palace(), text, threshold)

    def _hasten(self) -> None:
        """Spend a moment on the indexes, without loading a model for it; the next search does the rest."""
        from castle.store.catchup import catch_up_lexicon, refresh
        from castle.store.projection import ProjectionBlocked, ProjectionUnavailable

        palace = self._palace()
        if palace.embedder_loaded:
            refresh(palace, HASTE_SECONDS)
            return
        with suppress(ProjectionUnavailable, ProjectionBlocked, PalaceBusyError):
            catch_up_lexicon(palace, deadline=time.monotonic() + HASTE_SECONDS)
