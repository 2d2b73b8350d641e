"""What is made beside its place and moved there whole: nobody ever meets half of it."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from castle.errors import PalaceError
from castle.store.locks import FileLock

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
LOCK, WORK = "lock", "work"
"""Names in the directory of a draft: held by whoever makes it, and what is made."""


@contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """Give a new private directory beside ``target``, which is gone when the block ends.

    What processes that were killed left there for the same target is removed first. Raises OSError.
    """
    remove_left(target)
    draft = target.parent / f".{target.name}.{secrets.token_hex(4)}.draft"
    draft.mkdir(mode=0o700)
    try:
        with FileLock(draft / LOCK):
            (draft / WORK).mkdir(mode=0o700)
            yield draft / WORK
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def drafts_of(target: Path) -> list[Path]:
    """Return the directories of drafts beside ``target``, of processes at work and of killed ones."""
    return sorted(target.parent.glob(f".{escape(target.name)}.*.draft"))


def remove_left(target: Path) -> None:
    """Remove the drafts that killed processes left beside ``target``."""
    for left in drafts_of(target):
        with FileLock(left / LOCK) as dead:
            if dead:
                shutil.rmtree(left, ignore_errors=True)


def see_on_disk(path: Path) -> None:
    """Wait until the content of a file, or the names in a directory, would survive a power cut."""
    if os.name == "nt" and path.is_dir():  # Windows opens no directories
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def see_tree_on_disk(root: Path) -> None:
    """Wait until everything below a directory would survive a power cut."""
    for place, _, names in os.walk(root):
        for name in names:
            see_on_disk(Path(place) / name)
        see_on_disk(Path(place))


@contextmanager
def telling(what: str, place: Path) -> Iterator[None]:
    """Turn what the system says into one line: ``what`` could not be done to ``place``, and why."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise PalaceError(f"{what} {place}: {reason(error)}; nothing was changed") from error


def reason(error: OSError | sqlite3.Error) -> str:
    """Say in words for the user what the system or SQLite met."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (isinstance(error, OSError) and error.errno in _FULL):
        return "the disk is full"
    return str(getattr(error, "strerror", None) or error)
