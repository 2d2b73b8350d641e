"""Locks that the kernel gives back when their process ends, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FileLock:
    """An exclusive lock on a file, taken without waiting: ``with FileLock(path) as held: ...``.

    The file stays behind empty and means nothing by itself. The lock belongs to this object: a second
    FileLock on the same path is refused in this process too. Programs started meanwhile do not inherit it;
    a bare ``os.fork`` does, and the lock then lasts until both processes have let go.

    Whoever deletes the file while it is locked opens the door to a second holder, because that one locks a
    new file of the same name. Projections stay whole even then: Tantivy refuses a second writer and LanceDB
    detects conflicting commits.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reason = ""
        """Why the last ``try_acquire`` returned False, in words for the user."""
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self) -> bool:
        """Take the lock, or return False at once and say why in ``reason``."""
        if self.held:
            self.reason = "held by this process"
            return False
        # The file may be deleted or replaced between opening and locking it; then there is a new one to try.
        for _ in range(10):
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            except OSError as error:
                self.reason = f"cannot open {self.path}: {error.strerror}"
                return False
            try:
                _lock(descriptor)
            except OSError:
                os.close(descriptor)
                self.reason = "held by another process"
                return False
            if _is_file_at(descriptor, self.path):
                self._descriptor = descriptor
                self.reason = ""
                return True
            os.close(descriptor)
        self.reason = f"{self.path} is being replaced"
        return False

    def release(self) -> None:
        """Give the lock back; without one, do nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> bool:
        return self.try_acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _lock(descriptor: int) -> None:
    """Lock an open file; OSError when somebody else has it."""
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_file_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
