"""Appending an event to the spool of a palace, from any number of processes at once.

The names here are those of ``castle.store.spool``, which a hook must not import. Paths are put together by
hand because pathlib would cost a hook several milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

FOLDER = "spool"
FILE = "events.jsonl"
FAILED = "failed.json"
SIGNALS = "signals.jsonl"
TURNS = "turns"
TRIES = 50
MAX_SIGNALS = 1 << 20
MAX_HEAD = 1 << 13


def append(root: str, event: Mapping[str, object]) -> None:
    """Add one line and see it on disk. Raises OSError.

    A drainer takes the file away by renaming it. A line that went into a file which is gone from its place
    afterwards may have come too late for the drainer, so it is written again; events may come twice.
    """
    folder = os.path.join(root, FOLDER)  # noqa: PTH118
    path = os.path.join(folder, FILE)  # noqa: PTH118
    line = _line(event)
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


def signal(root: str, event: Mapping[str, object]) -> None:
    """Note what an agent did; a signal is not worth waiting for the disk. Raises OSError.

    Of very many only the last are kept, one to two megabytes of them.
    """
    _make(os.path.join(root, FOLDER))  # noqa: PTH118
    path = os.path.join(root, FOLDER, SIGNALS)  # noqa: PTH118
    descriptor = _open(path)
    try:
        if os.fstat(descriptor).st_size > MAX_SIGNALS:
            os.replace(path, f"{path}.1")  # noqa: PTH105
        _write(descriptor, _line(event))
    finally:
        os.close(descriptor)


def due(root: str, hook: str, session: str, interval: int) -> bool:
    """Whether what this hook noted is to be filed at once: every ``interval``-th time, and at every end.

    How often a session has stopped is the size of a file of its own, to which each time adds a byte.
    """
    if interval == 1 or not session:
        return True
    path = os.path.join(root, FOLDER, TURNS, session)  # noqa: PTH118
    try:
        if hook != "stop":
            os.unlink(path)  # noqa: PTH108
            return True
        _make(os.path.dirname(path))  # noqa: PTH120
        descriptor = _open(path)
        try:
            os.write(descriptor, b".")
            return os.fstat(descriptor).st_size % interval == 0
        finally:
            os.close(descriptor)
    except OSError:  # a count that cannot be kept must not keep anything from being saved
        return True


def oldest(root: str) -> int | None:
    """Return when the first event that waits was noted, in microseconds; None when none waits.

    Events that could not be filed are not meant; ``failed.json`` tells of those.
    """
    head = _head(os.path.join(root, FOLDER, FILE))  # noqa: PTH118
    try:
        at = json.loads(head.partition(b"\n")[0])["at"] if head else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return at if isinstance(at, int) else None


def failed(root: str) -> Mapping[str, object]:
    """Return what is known of the last save when it failed; empty when it did not."""
    head = _head(os.path.join(root, FOLDER, FAILED))  # noqa: PTH118
    try:
        loaded = json.loads(head) if head else {}
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def note_unnoted(root: str, event: Mapping[str, object], detail: str) -> None:
    """Leave word of an event that the spool has no room for, where that is possible."""
    path = os.path.join(root, FOLDER, FAILED)  # noqa: PTH118
    data = json.dumps({**event, "detail": detail[:300], "unnoted": True}, ensure_ascii=True).encode("ascii")
    try:
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _head(path: str) -> bytes:
    """Return the first bytes of a file; none when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
        try:
            return os.read(descriptor, MAX_HEAD)
        finally:
            os.close(descriptor)
    except OSError:
        return b""


def _line(event: Mapping[str, object]) -> bytes:
    return json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


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
