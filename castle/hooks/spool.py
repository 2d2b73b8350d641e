"""Appending an event to the spool of a palace, from any number of processes at once.

The names here are those of ``castle.store.spool``, which a hook must not import.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

FOLDER = "spool"
FILE = "events.jsonl"
TRIES = 50


def palace_path(given: str | None, env: Mapping[str, str]) -> str:
    """Return the palace's directory: the one given, CASTLE_PALACE_PATH, or ``palace`` in Castle's home."""
    named = given or env.get("CASTLE_PALACE_PATH") or env.get("MEMPAL_PALACE_PATH")
    path = named or os.path.join(env.get("CASTLE_HOME") or "~/.castle", "palace")  # noqa: PTH118
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111


def append(root: str, event: Mapping[str, object]) -> None:
    """Add one line and see it on disk. Raises OSError.

    A drainer takes the file away by renaming it. A line that went into a file which is gone from its place
    afterwards may have come too late for the drainer, so it is written again; events may come twice.
    """
    folder = os.path.join(root, FOLDER)  # noqa: PTH118
    path = os.path.join(folder, FILE)  # noqa: PTH118
    line = json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
    for _ in range(TRIES):
        try:
            descriptor = _open(path)
        except FileNotFoundError:
            _make(folder)
            continue
        try:
            fresh = _write(descriptor, line)
            os.fsync(descriptor)
            if fresh:
                _keep_name(folder)
            if _stands_at(descriptor, path):
                return
        finally:
            os.close(descriptor)
    raise OSError(f"{path} is being replaced all the time")


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags, 0o600)


def _make(folder: str) -> None:
    """Make the spool, and never the palace around it."""
    try:
        os.mkdir(folder, 0o700)  # noqa: PTH102
    except FileExistsError:
        pass


def _keep_name(folder: str) -> None:
    """See the name of a new file on disk, where a directory can be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(descriptor: int, line: bytes) -> bool:
    """Write a whole line, apart from one that a full disk cut off; tell whether it is the first."""
    size = os.fstat(descriptor).st_size
    if size and hasattr(os, "pread") and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    while line:
        line = line[os.write(descriptor, line) :]
    return size == 0


def _stands_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False
