"""Appending an event to the spool of a palace, from any number of processes at once.

The names here are those of ``castle.store.spool``, which a hook must not import. Paths are put together by
hand because pathlib would cost a hook several milliseconds.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping

FOLDER = "spool"
FILE = "events.jsonl"
FAILED = "failed.json"
RESERVE = "reserve.jsonl"
SIGNALS = "signals.jsonl"
DRAFT = ".draft"
TURNS = "turns"
TRIES = 50
MAX_SIGNALS = 1 << 20
MAX_HEAD = 1 << 13
RESERVED = 1 << 16
"""Bytes of the reserve, which is there before it is needed."""

MARKS = RESERVED - 1024
"""Where in the reserve stands how many events found no room in it."""


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


def moved_aside(root: str) -> str:
    """Return where the palace is that a restore has moved aside without putting the other one there yet.

    "" when there is none. The names are those of ``castle.store.drafts`` and ``castle.store.restoring``; what
    is noted there goes with the palace that comes, or that comes back.
    """
    place, name = os.path.split(os.path.realpath(root))  # noqa: PTH118
    try:
        drafts = [each for each in os.listdir(place) if each.startswith(f".{name}.") and each.endswith(DRAFT)]  # noqa: PTH208
    except OSError:
        return ""
    for draft in drafts:
        aside = _head(os.path.join(place, draft, "aside")).decode("utf-8", "replace")  # noqa: PTH118
        path = os.path.join(place, aside)  # noqa: PTH118
        if aside.startswith(f"{name}.before-restore-") and "/" not in aside and os.path.isdir(path):  # noqa: PTH112
            return path
    return ""


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
    folder = os.path.join(root, FOLDER)  # noqa: PTH118
    head = _head(os.path.join(folder, FILE)) or _head(os.path.join(folder, RESERVE))  # noqa: PTH118
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
    """Put an event for which the spool has no room into the reserve, and leave word of it, where possible."""
    folder = os.path.join(root, FOLDER)  # noqa: PTH118
    try:
        kept = _reserve(os.path.join(folder, RESERVE), _line(event))  # noqa: PTH118
    except OSError:
        kept = False
    said = {
        "v": 1,
        "at": event.get("at"),
        "session": event.get("session"),
        "transcript": str(event.get("transcript"))[:1000],
        "detail": detail[:300] if kept else f"{detail[:300]}; it is lost",
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(os.path.join(folder, FAILED), flags, 0o600)  # noqa: PTH118
        try:
            os.write(descriptor, json.dumps(said, ensure_ascii=True).encode("ascii"))
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _reserve(path: str, line: bytes) -> bool:
    """Write a line over the line ends of which the reserve is made: their place on disk is taken already.

    Returns False when there is no room for it; how often that happened is the number of dots at the end.
    """
    for _ in range(TRIES):
        descriptor = _open(path, 0)
        try:
            if not _locked(descriptor) or not _stands_at(descriptor, path):
                time.sleep(0.002)
                continue
            data = os.read(descriptor, RESERVED)
            if len(data) < RESERVED:
                _whole(descriptor, b"\n" * (RESERVED - len(data)))
                data = data.ljust(RESERVED, b"\n")
            end = len(data[:MARKS].rstrip(b"\n"))
            line = b"\n" + line if end else line
            fits = end + len(line) <= MARKS
            place = end if fits else min(MARKS + data.count(b".", MARKS), RESERVED - 2)
            os.lseek(descriptor, place, os.SEEK_SET)
            _whole(descriptor, line if fits else b".")
            os.fsync(descriptor)
            return fits
        finally:
            os.close(descriptor)
    return False


def _locked(descriptor: int) -> bool:
    """Lock a regular file against others who write into its middle; False when one of them has it."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("the reserve is no regular file")
    try:
        import fcntl
    except ImportError:  # Windows, where a lock would keep the drainer from moving the file
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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


def _open(path: str, mode: int = os.O_APPEND) -> int:
    flags = os.O_RDWR | os.O_CREAT | mode
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
    _whole(descriptor, line)
    return size == 0


def _whole(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _stands_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False
