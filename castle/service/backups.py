"""Keeping copies of the palace: backup and restore, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from castle.errors import CastleError
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.records import Finding
    from castle.store.backup import Backup, Progress
    from castle.store.restoring import Restored


class Copying(Base):
    """What writes the palace into files and reads it from them."""

    def backup(self, path: Path | str, *, force: bool = False, progress: Progress | None = None) -> Backup:
        """Write the palace into one file, as it is at one moment, while others may write; prove the file.

        It holds the ledger, the events that wait in the spool, and ``identity.txt``. Indexes are not in it:
        they are built again from the ledger. Raises RefusedError for a file that exists, without ``force``.
        """
        from castle.store.backup import backup
        from castle.store.palace import Palace

        palace: Palace = self._palace()
        return backup(palace.ledger, Path(path), self._identity_file(), force=force, progress=progress)

    def restore_backup(
        self, path: Path | str, *, yes: bool = False, progress: Progress | None = None
    ) -> Restored:
        """Put a backup back where this palace is, or is to be.

        A palace that is there is moved aside if ``yes``, else it is refused. The ledger begins a new epoch,
        and its indexes are built again by the next search, or by ``catch_up``.
        """
        from castle.store.restoring import restore_backup

        self.close()
        return restore_backup(Path(path), self.root, self._identity_file(), yes=yes, progress=progress)

    def catch_up(self, progress: Progress | None = None) -> list[str]:
        """Bring all indexes up to date; return what could not be done now, in words for the user."""
        from castle.store.catchup import catch_up_lexicon, catch_up_vectors

        palace = self._palace()
        troubles = []
        for name, work in (("words", catch_up_lexicon), ("vectors", catch_up_vectors)):

            def report(done: int, total: int, name: str = name) -> None:
                if progress is not None:
                    progress(name, done, total)

            try:
                work(palace, progress=report)
            except CastleError as error:
                troubles.append(f"{name}: {error}")
        return troubles

    def repair_status(self, progress: Progress | None = None) -> list[Finding]:
        """Say of every part of the palace whether what it promises is in force; changes nothing."""
        from castle.keep.standing import standing

        return standing(self._palace(), progress)

    def _identity_file(self) -> Path:
        from castle.wakeup.identity import FILE_NAME

        return self.settings.home / FILE_NAME
