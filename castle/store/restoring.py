"""Putting a backup back: into a new palace, or into the place of one that is moved aside.

The ledger that comes out of a backup begins a new epoch, so that no index of another time passes for its own.

Two renames put it in place: the palace that is there goes aside, the new one comes. A note in the directory
of the draft says so before the first, and whoever finds no palace there looks for it: a restore that was
killed between the two is finished by the next command, whichever that is.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Literal

from castle.errors import PalaceBusyError, PalaceError, PalaceVersionError, RefusedError, UsageError
from castle.store.backup import (
    IDENTITY,
    Archive,
    Progress,
    check_ledger,
    opened,
    schema_in,
    spool_lines,
)
from castle.store.drafts import (
    LOCK,
    WORK,
    draft_beside,
    drafts_of,
    remove_left,
    see_on_disk,
    see_tree_on_disk,
    telling,
)
from castle.store.ledger import FILE_NAME, PATIENCE_SECONDS
from castle.store.locks import FileLock
from castle.store.novelty_tables import META_KEY
from castle.store.purged import COPIES_KEY, list_of_copies, list_with_copies
from castle.store.reviews import ARCHIVE as REVIEWS
from castle.store.reviews import unpack
from castle.store.schema import SCHEMA_VERSION
from castle.store.spool import FOLDER

ASIDE = "before-restore"
_ASIDE_NAME = re.compile(rf".+\.{ASIDE}-\d{{8}}T\d{{6}}Z(-[0-9a-f]{{4}})*", re.DOTALL)
_NOTE = "aside"
"""In the directory of a draft: the name of where the palace that it replaces goes."""
_POLL_SECONDS = 0.02
_PARTS = (FILE_NAME, "drawers.lance", "lexicon", FOLDER)
_CANNOT = "nothing can be restored to"


@dataclass(frozen=True, slots=True)
class Restored:
    """A palace that was put back, as it was at ``created_at``.

    ``aside`` is where the palace that stood there has gone, "" when there was none, and ``removed`` an
    earlier one that had gone there before. ``events`` wait in the spool, with those of the former palace.
    ``identity`` says whether ``identity.txt`` was put back, or the one that is there was kept; "" for none.
    ``unpurged`` drawers had been purged since and are back: a backup has what was there when it was made.
    """

    palace: str
    backup: str
    created_at: int
    schema: int
    sources: int
    drawers: int
    events: int
    aside: str
    removed: str
    identity: Literal["", "restored", "kept"]
    unpurged: tuple[str, ...] = ()


def restore_backup(
    source: Path, root: Path, identity: Path, *, yes: bool = False, progress: Progress | None = None
) -> Restored:
    """Put the backup ``source`` back as the palace at ``root``.

    A palace that is there is moved aside if ``yes``, and the one that was moved aside before is removed.
    ``identity`` is where the user's ``identity.txt`` belongs; one that is there stays. Raises RefusedError
    when something stands at ``root`` and ``yes`` is false, PalaceError for a damaged backup or a full disk;
    nothing has changed then.
    """
    root = root.resolve()
    tell = progress or (lambda *_: None)
    if not source.is_file():
        raise UsageError(f"there is no file {source}: name one that `castle backup` has made")
    finish_stopped(root)
    remove_left(root)
    _check_place(root, yes)
    with opened(source) as archive:
        _check_version(archive)
        with telling(_CANNOT, root):
            root.parent.mkdir(parents=True, exist_ok=True)
        with telling(_CANNOT, root), draft_beside(root) as draft:
            _unpack(archive, draft, tell)
            kept = draft.parent / IDENTITY
            if IDENTITY in archive.entries:
                (draft / IDENTITY).replace(kept)
            purged = _purged(root / FILE_NAME) - _purged(draft / FILE_NAME)
            _note_copies(draft / FILE_NAME, [*_copies(root / FILE_NAME), str(source.absolute())])
            _take_events(draft, root)
            aside = _put_in_place(draft, root)
            events = _events_too(root, aside)
            said = _put_identity(kept, identity)
    return Restored(
        palace=str(root),
        backup=str(source),
        created_at=archive.created_at,
        schema=archive.schema,
        sources=archive.counts["sources"],
        drawers=archive.counts["drawers"],
        events=events,
        aside="" if aside is None else str(aside),
        removed=_only_one(root, aside),
        identity=said,
        unpurged=tuple(sorted(purged)),
    )


def set_aside(root: Path) -> list[Path]:
    """Return the palaces that restoring has moved aside from ``root``, the oldest first."""
    places = sorted(root.parent.glob(f"{escape(root.name)}.{ASIDE}-*"))
    return [place for place in places if _ASIDE_NAME.fullmatch(place.name)]


def finish_stopped(root: Path) -> bool:
    """Put a palace at ``root`` where a restore was killed after it had moved the one there aside.

    That is the backup's, which is whole by then, or the one that was there, should the former be lost.
    Returns whether there was something to do. Raises PalaceBusyError when that restore is still at work,
    PalaceError when nothing can be written there.
    """
    root = root.resolve()
    if root.exists():
        return False
    for folder in drafts_of(root):
        try:
            aside = root.with_name((folder / _NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if not _ASIDE_NAME.fullmatch(aside.name) or not aside.is_dir():
            continue
        with _dead(folder, root), telling(f"a restore was killed, and {aside} cannot be moved to", root):
            if root.exists():
                return False
            work = folder / WORK
            if (work / FILE_NAME).is_file():
                _take_events(work, aside)  # before: whoever is killed after the renaming comes here no more
                work.rename(root)
            else:
                aside.rename(root)
            see_on_disk(root.parent)
            if aside.is_dir():
                _take_events(root, aside)
            (folder / _NOTE).unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        return True
    return False


@contextmanager
def _dead(folder: Path, root: Path) -> Iterator[None]:
    """Hold the lock of a draft, once whoever made it is gone or has put a palace at ``root``."""
    lock = FileLock(folder / LOCK)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not lock.try_acquire():
        if root.exists():
            break
        if not lock.reason.startswith("held"):
            raise PalaceError(f"a restore of {root} was killed and cannot be finished: {lock.reason}")
        if time.monotonic() > deadline:
            raise PalaceBusyError(f"a restore of {root} is at work: run the command again when it has ended")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _check_place(root: Path, yes: bool) -> None:
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return
    if not root.is_dir() or not any((root / part).exists() for part in _PARTS):
        raise RefusedError(f"{root} is there and is no palace: name a new directory with --palace")
    if not yes:
        raise RefusedError(
            f"there is a palace at {root}: --yes moves it aside, or name another place with --palace"
        )


def _check_version(archive: Archive) -> None:
    if archive.schema > SCHEMA_VERSION:
        raise PalaceVersionError(
            f"{archive.path} has schema {archive.schema}, this Castle knows {SCHEMA_VERSION}: "
            "upgrade with `pip install -U cognitive-castle`"
        )


def _unpack(archive: Archive, draft: Path, tell: Progress) -> None:
    """Make a palace of the backup in the draft, and prove it."""
    needed = sum(entry.size for entry in archive.entries.values())
    if (free := shutil.disk_usage(draft).free) < needed:
        raise PalaceError(
            f"{_CANNOT} {draft.parent.parent}: {needed:,} bytes are needed and {free:,} are free; "
            "nothing was changed"
        )
    (draft / FOLDER).mkdir(mode=0o700)
    for name in archive.entries:
        place = draft / name
        place.touch(mode=0o600)
        with place.open("wb") as out:
            for piece in archive.pieces(name, tell):
                out.write(piece)
    try:
        check_ledger(draft / FILE_NAME, archive.counts)
        if schema_in(draft / FILE_NAME) != archive.schema:
            raise PalaceError(f"the ledger in it has not the schema {archive.schema} that it says")
    except PalaceError as error:
        raise PalaceError(f"{archive.path} is damaged: {error}; nothing was changed") from error
    if REVIEWS in archive.entries:
        unpack(draft / REVIEWS, draft)
    with closing(sqlite3.connect(draft / FILE_NAME, isolation_level=None)) as cx:
        begin_epoch(cx)
    see_tree_on_disk(draft)


def begin_epoch(cx: sqlite3.Connection) -> None:
    """Give a ledger a new epoch: it goes on from here, and no index that was made before fits it.

    Novelty is a table of the ledger itself, and goes with it.
    """
    known = dict(cx.execute("SELECT key, value FROM meta WHERE key IN ('epoch', ?)", (META_KEY,)))
    new = secrets.token_hex(8)
    statement = "UPDATE meta SET value = ? WHERE key = ?"
    cx.execute("BEGIN IMMEDIATE")
    cx.execute(statement, (new, "epoch"))
    if META_KEY in known and "epoch" in known:
        cx.execute(statement, (known[META_KEY].replace(f'"{known["epoch"]}:', f'"{new}:'), META_KEY))
    cx.execute("COMMIT")


def _purged(path: Path) -> set[str]:
    """Return the drawers of a ledger that were purged; none where that cannot be read."""
    query = "SELECT drawers.id FROM purged JOIN drawers ON drawers.rid = purged.drawer"
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as cx:
        return {str(id_) for (id_,) in cx.execute(query)}
    return set()


def _copies(path: Path) -> list[str]:
    """Return the backups and exports that a ledger knows of; none where that cannot be read."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as cx:
        return list_of_copies(_value(cx, COPIES_KEY))
    return []


def _note_copies(path: Path, more: list[str]) -> None:
    """Let a ledger know of further copies, so that a purge can name them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as cx:
        known = list_of_copies(_value(cx, COPIES_KEY))
        value = list_with_copies(known, more)
        cx.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (COPIES_KEY, value))


def _value(cx: sqlite3.Connection, key: str) -> str | None:
    row = cx.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _put_in_place(draft: Path, root: Path) -> Path | None:
    """Move the palace at ``root`` aside and the draft there; return where the former one is now."""
    if not root.exists() or not any(root.iterdir()):
        if root.exists():
            root.rmdir()
        draft.rename(root)
        see_on_disk(root.parent)
        return None
    aside = root.with_name(f"{root.name}.{ASIDE}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    while aside.exists():
        aside = aside.with_name(f"{aside.name}-{secrets.token_hex(2)}")
    note = draft.parent / _NOTE
    note.write_text(aside.name, encoding="utf-8")
    see_on_disk(note)
    see_on_disk(draft.parent)
    with _nobody_writes(root / FILE_NAME):
        root.rename(aside)
        try:
            draft.rename(root)
        except BaseException:
            aside.rename(root)
            raise
    see_on_disk(root.parent)
    note.unlink(missing_ok=True)  # it is done, whatever happens to what stands there from now on
    return aside


@contextmanager
def _nobody_writes(path: Path) -> Iterator[None]:
    """Hold the write lock of a ledger, so that nobody is in the midst of a change; a damaged one has none."""
    if not path.is_file():
        yield
        return
    with closing(sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)) as cx:
        try:
            cx.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise PalaceBusyError(
                    f"{path} was busy for {PATIENCE_SECONDS:.0f} s: another process is writing; nothing was "
                    "changed, run the command again"
                ) from error
        yield


def _events_too(root: Path, aside: Path | None) -> int:
    """Give the palace what hooks noted in the former one until it went; return how many events wait."""
    if aside is not None:
        _take_events(root, aside)
    return len(spool_lines(root))


def _take_events(root: Path, former: Path) -> None:
    """Put what waits in the spool of another palace into that of one, too."""
    known = set(spool_lines(root))
    more = [line for line in spool_lines(former) if line not in known]
    if more:
        place = root / FOLDER / f"drain-{time.time_ns()}-{os.getpid()}.jsonl"
        place.touch(mode=0o600)
        place.write_bytes(b"".join(line + b"\n" for line in more))
        see_on_disk(place)


def _put_identity(kept: Path, identity: Path) -> Literal["", "restored", "kept"]:
    if not kept.is_file():
        return ""
    if identity.exists():
        return "restored" if identity.read_bytes() == kept.read_bytes() else "kept"
    identity.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copyfile(kept, identity)
    identity.chmod(0o600)
    return "restored"


def _only_one(root: Path, aside: Path | None) -> str:
    """Remove all that was moved aside but the last; return what was removed."""
    gone = []
    last = aside or next(reversed(set_aside(root)), None)
    for old in set_aside(root):
        if old != last:
            with suppress(OSError):
                shutil.rmtree(old)
                gone.append(str(old))
    return ", ".join(gone)
