"""Where reviews of requirements stand in a palace, and what a purge and a backup do with them.

A run is a directory with snapshots of drawers and what a model said of them; ``castle.sue`` writes it.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from castle.errors import PalaceBusyError, PalaceError
from castle.store.ledger import batches
from castle.store.schema import drawers

if TYPE_CHECKING:
    from castle.store.palace import Palace
    from castle.store.purge_files import Finder

FOLDER = "sue"
MANIFEST = "manifest.json"
ARCHIVE = "sue-runs.tar"
"""The member of a backup that holds every run."""

RUN_ID = re.compile(r"[0-9a-f]{32}")
_GONE = ".gone"
_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.05


@contextmanager
def no_purge(palace: Palace) -> Iterator[None]:
    """Keep purges away while drawers are copied: none could find what is not written yet."""
    lock = palace.lock("purge")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not lock.try_acquire():
        if not lock.reason.startswith("held") or time.monotonic() > deadline:
            raise PalaceBusyError(f"a purge is at work ({lock.reason}): run the command again")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def runs_folder(root: Path) -> Path:
    """Return the directory that holds the runs of a palace; it need not be there."""
    return root / FOLDER / "runs"


def run_folders(root: Path) -> list[Path]:
    """Return the directory of every run."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(
            place
            for place in runs_folder(root).iterdir()
            if RUN_ID.fullmatch(place.name) and place.is_dir() and not place.is_symlink()
        )
    return []


def forget_reviews(palace: Palace, rids: Sequence[int], finder: Finder | None = None) -> list[Path]:
    """Remove every run that read one of these drawers, or quotes what the finder knows; return them.

    A worker that is writing into one finds its directory gone, and ends. Raises OSError.
    """
    for left in _half_gone(palace.root):
        shutil.rmtree(left, ignore_errors=True)
    runs = run_folders(palace.root)
    if not runs:
        return []
    wanted = _ids(palace, rids)
    removed = []
    for run in runs:
        quotes = finder is not None and any(finder.look_into(file).part for file in _files(run))
        read = _drawers(run)
        if not quotes and read is not None and wanted.isdisjoint(read):
            continue
        # Renamed first: a purge that is killed meanwhile has no half a run to judge.
        gone = run.rename(run.with_name(f"{run.name}{_GONE}"))
        shutil.rmtree(gone)
        removed.append(run)
    return removed


def _ids(palace: Palace, rids: Sequence[int]) -> set[str]:
    with palace.ledger.read() as cx:
        found = (cx.execute(select(drawers.c.id).where(drawers.c.rid.in_(part))) for part in batches(rids))
        return {id_ for rows in found for (id_,) in rows}


def _half_gone(root: Path) -> list[Path]:
    folder = runs_folder(root)
    return [*folder.glob(f"*{_GONE}"), *folder.glob(".*.draft")] if folder.is_dir() else []


def _drawers(run: Path) -> set[str] | None:
    """Return the drawers that a run has read; None where that cannot be told any more."""
    try:
        manifest = json.loads((run / MANIFEST).read_text(encoding="utf-8"))
        return {str(source["drawer_id"]) for source in manifest["sources"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _files(run: Path) -> Iterator[Path]:
    for path in sorted(run.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def pack(root: Path, place: Path) -> bool:
    """Write every run into one archive at ``place``; tell whether there was any. Raises OSError."""
    runs = run_folders(root)
    if not runs:
        return False
    with tarfile.open(place, "w") as out:
        for run in runs:
            for path in _files(run):
                with suppress(FileNotFoundError):  # a draft that has just taken its place
                    content = path.read_bytes()
                    entry = tarfile.TarInfo(f"{run.name}/{path.relative_to(run).as_posix()}")
                    entry.size = len(content)
                    entry.mode = 0o600
                    entry.mtime = int(path.stat().st_mtime)
                    out.addfile(entry, io.BytesIO(content))
    return True


def unpack(place: Path, root: Path) -> None:
    """Put the runs of an archive into a palace that has none, and remove the archive. Raises PalaceError."""
    folder = runs_folder(root)
    folder.parent.mkdir(mode=0o700, parents=True)
    folder.mkdir(mode=0o700)
    try:
        with tarfile.open(place) as archive:
            for entry in archive:
                parts = entry.name.split("/")
                content = archive.extractfile(entry) if entry.isreg() else None
                if content is None or not RUN_ID.fullmatch(parts[0]) or not 2 <= len(parts) <= 3:
                    raise PalaceError(f"{ARCHIVE} in the backup holds what no run holds: {entry.name}")
                if any(part in ("", ".", "..") or "\\" in part or ":" in part for part in parts):
                    raise PalaceError(f"{ARCHIVE} in the backup names a place outside it: {entry.name}")
                target = folder.joinpath(*parts)
                for above in reversed(target.relative_to(folder).parents[:-1]):
                    (folder / above).mkdir(mode=0o700, exist_ok=True)
                target.touch(mode=0o600, exist_ok=False)
                target.write_bytes(content.read())
    except (tarfile.TarError, FileExistsError) as error:
        raise PalaceError(f"{ARCHIVE} in the backup is damaged: {error}") from error
    place.unlink()
