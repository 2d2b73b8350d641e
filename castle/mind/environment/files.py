"""Reading files of a project, and nothing else: no link that leads out of it, nothing that is not a file."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from castle.mind.conditions.rules import FileState

MAX_READ_BYTES = 20_000_000
"""A manifest or lock file that is larger is not read."""
MAX_HASHED_BYTES = 200_000_000
_BLOCK = 1 << 20


class UnlookedError(Exception):
    """A file is there and was not looked at; the message says why."""


def read_inside(root: Path, relative: str, most: int = MAX_READ_BYTES) -> bytes | None:
    """Return the bytes of a file inside the project, None where there is none; raises UnlookedError."""
    opened = _open(root, relative, most)
    if opened is None:
        return None
    with os.fdopen(opened[0], "rb") as file:
        return file.read(most)


def file_state(root: Path, relative: str, most: int = MAX_HASHED_BYTES) -> FileState:
    """Return hash, time and size of a file inside the project; raises nothing."""
    try:
        opened = _open(root, relative, most)
        if opened is None:
            return FileState()
        descriptor, status = opened
        digest = hashlib.sha256()
        with os.fdopen(descriptor, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return FileState(digest.hexdigest(), status.st_mtime_ns, status.st_size)
    except (UnlookedError, OSError) as error:
        return FileState(problem=getattr(error, "strerror", None) or str(error))


def _open(root: Path, relative: str, most: int) -> tuple[int, os.stat_result] | None:
    try:
        top = root.resolve()
        real = (top / relative).resolve()
    except (OSError, RuntimeError, ValueError):
        raise UnlookedError("its path cannot be followed") from None
    if not real.is_relative_to(top):
        raise UnlookedError("it leads out of the project")
    # The path has no links any more; one that has taken the place of the file since is not followed.
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        descriptor = os.open(real, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UnlookedError(getattr(error, "strerror", None) or "it cannot be opened") from None
    status = os.fstat(descriptor)
    problem = ""
    if not stat.S_ISREG(status.st_mode):
        problem = "it is no file"
    elif status.st_size > most:
        problem = f"it has {status.st_size:,} bytes, more than {most:,}"
    if problem:
        os.close(descriptor)
        raise UnlookedError(problem)
    return descriptor, status
