"""Keeping copies of the palace: backup and restore, export and import."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from castle.arguments import legal
from castle.errors import ModelError
from castle.service.base import Base

if TYPE_CHECKING:
    from castle.keep.exporting import Exported
    from castle.keep.importing import Imported
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

    def export(
        self,
        directory: Path | str,
        *,
        format: str = "markdown",
        wing: str | None = None,
        history: bool = False,
        include_secrets: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write the palace, or a wing of it, into a new or empty directory.

        ``format`` is ``markdown``, a tree to read with everything sealed masked, or ``jsonl``, one file that
        ``import_from`` reads; that one is exact with ``include_secrets`` and masked without. ``history`` adds
        superseded drawers to the tree; the other form has them always.
        """
        from castle.keep.exporting import check_format, export

        return export(
            self._palace(),
            Path(directory),
            format=check_format(format, include_secrets),
            wing=legal(wing),
            history=history,
            include_secrets=include_secrets,
            progress=progress,
        )

    def import_from(self, path: Path | str, *, progress: Progress | None = None) -> Imported:
        """Merge what ``export`` wrote as ``jsonl`` into this palace, which is made when there is none.

        ``path`` is the file or its directory. What the palace holds already is known and left as it is; what
        differs is reported and not replaced. A new palace takes the embedder of the export, unless settings
        name another.
        """
        from castle.keep.importing import check_version, import_jsonl
        from castle.keep.layout import FILE, proven

        file = Path(path)
        file = file / FILE if file.is_dir() else file
        head = proven(file)
        check_version(file, head)
        if not self._exists():
            self._make_for(head.about.get("embedder"))
        return import_jsonl(self._palace(create=True), file, head, progress)

    def _make_for(self, embedder: object) -> None:
        """Make the palace for an embedder, if that can be had and the settings name none."""
        from castle.store.palace import Palace

        if isinstance(embedder, str) and self.settings.origin("embedder_model") == "default":
            with suppress(ModelError):
                Palace(
                    self.root, create=True, embedder=embedder, endpoint=self._endpoint, clock=self._clock
                ).close()

    def repair_status(self, progress: Progress | None = None) -> list[Finding]:
        """Say of every part of the palace whether what it promises is in force; changes nothing."""
        from castle.keep.standing import standing

        return standing(self._palace(), progress)

    def _identity_file(self) -> Path:
        from castle.wakeup.identity import FILE_NAME

        return self.settings.home / FILE_NAME
