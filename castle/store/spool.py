"""The spool of a palace: events that hooks have noted and that wait to be drained.

``events.jsonl`` is what hooks append to. A drainer renames it to ``drain-….jsonl`` before it reads it, so
that nothing is added to what it works on; a file of that name which is left behind by a crash is drained by
the next one. ``reserve.jsonl`` is a file of line ends, into which hooks write what ``events.jsonl`` has no
room for on a full disk. Lines that are no event are moved to ``unreadable.jsonl``. ``failed.json`` is there
while the last save of some session has failed: the beginning of a session reads it, which cannot open the
ledger.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from castle.store.locks import FileLock

FOLDER = "spool"
FILE = "events.jsonl"
UNREADABLE = "unreadable.jsonl"
FAILED = "failed.json"
RESERVE = "reserve.jsonl"
RESERVED = 1 << 16
TURNS = "turns"
LOCK = "drain.lock"
_PREFIX = "drain-"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the spool: what happened in which session, and the transcript that tells it."""

    line: bytes
    at: int
    hook: str
    harness: str
    session: str
    transcript: str
    cwd: str = ""


def pending(root: Path) -> bool:
    """Whether anything has been noted that no drainer has taken yet."""
    try:
        status = (root / FOLDER / FILE).stat()
        if stat.S_ISREG(status.st_mode) and status.st_size:
            return True
    except OSError:
        pass
    return _used(root / FOLDER / RESERVE)


def in_the_way(root: Path) -> str:
    """Return what keeps hooks from noting anything, or the drainer from reading it; "" when nothing does."""
    folder = root / FOLDER
    if not os.path.lexists(folder):
        return ""
    if not folder.is_dir():
        return f"{folder} is no directory"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written"
    names = (FILE, RESERVE, FAILED, LOCK, "drainer.lock", "drain.log")
    for path in (*(folder / name for name in names), *sorted(folder.glob(f"{_PREFIX}*.jsonl"))):
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            return f"{path} is no regular file"
    return ""


def waiting(root: Path) -> int:
    """Count the events that wait in the spool of the palace at ``root``."""
    return sum(len(_lines(file)) for file in written(root))


def written(root: Path) -> list[Path]:
    """Return the files in which events wait."""
    folder = root / FOLDER
    return [*_files(folder), *(file for file in (folder / FILE, folder / RESERVE) if file.is_file())]


def take(root: Path) -> tuple[Path, ...]:
    """Take what hooks have appended out of their reach; return the files to be drained, leftovers too.

    The caller holds the drainer's lock.
    """
    folder = root / FOLDER
    current = folder / FILE
    if current.is_file():
        current.rename(_taken(folder))
    reserve = folder / RESERVE
    if _used(reserve):
        with FileLock(reserve) as held:
            if held:
                reserve.rename(_taken(folder))
    return tuple(_files(folder))


def read(files: Sequence[Path]) -> tuple[list[Event], list[bytes]]:
    """Return the events in some files in order, and the lines that are none."""
    events: list[Event] = []
    unreadable: list[bytes] = []
    for file in files:
        for line in _lines(file):
            found = _event(line)
            if found is None:
                unreadable.append(line)
            else:
                events.append(found)
    return events, unreadable


def settle(root: Path, files: Sequence[Path], kept: Sequence[Event], unreadable: Sequence[bytes]) -> None:
    """Put away files that were drained; ``kept`` waits for the next drainer.

    What stays is on disk before what goes is removed; a crash in between leaves events twice, never none.
    """
    folder = root / FOLDER
    for left in folder.glob(f"{_PREFIX}*.tmp"):  # of a drainer that was killed, or met a full disk
        left.unlink(missing_ok=True)
    if unreadable:
        _write(folder / UNREADABLE, unreadable, os.O_APPEND)
    if kept:
        target = _taken(folder)
        draft = target.with_suffix(".tmp")
        _write(draft, [event.line for event in kept], os.O_TRUNC)
        draft.replace(target)
    for file in files:
        file.unlink()
    reserve = folder / RESERVE
    with suppress(OSError), FileLock(reserve) as held:
        if held and not reserve.stat().st_size:
            _write(reserve, [b"\n" * (RESERVED - 1)], os.O_APPEND)


def lost(unreadable: Sequence[bytes]) -> int:
    """Return how many events found no room in the reserve either: lines of dots count them."""
    return sum(len(line) for line in unreadable if not line.strip(b"."))


@dataclass(frozen=True, slots=True)
class Told:
    """What ``failed.json`` says: when which save failed, and why."""

    at: int
    session: str
    transcript: str
    detail: str


def told(root: Path) -> Told | None:
    """Return what ``failed.json`` says, None when no save has failed or it cannot be read."""
    loaded = _failure(root)
    if not loaded:
        return None
    at = loaded.get("at")
    texts = [loaded.get(name) for name in ("session", "transcript", "detail")]
    session, transcript, detail = (_valid(text) if isinstance(text, str) else "" for text in texts)
    return Told(at if isinstance(at, int) else 0, session, transcript, detail or "no reason is known")


def tell_failure(root: Path, at: int, session: str, transcript: str, detail: str) -> None:
    """Leave word of a save that failed in ``failed.json``, as well as that is possible on a full disk."""
    said = {"v": 1, "at": at, "session": session, "transcript": transcript, "detail": detail}
    if _failure(root) == said:
        return
    folder = root / FOLDER
    line = json.dumps(said, ensure_ascii=True).encode("ascii")
    draft = folder / f"{FAILED}.tmp"
    try:
        _write(draft, [line], os.O_TRUNC)
        draft.replace(folder / FAILED)
    except OSError:
        with suppress(OSError):  # what is there already may still have room
            _write(folder / FAILED, [line], os.O_TRUNC)


def tell_success(root: Path) -> None:
    """Take back that a save has failed."""
    with suppress(OSError):
        (root / FOLDER / FAILED).unlink(missing_ok=True)


def forget_turns(root: Path, before: float) -> None:
    """Remove the counts of stops that have not changed since a time in seconds."""
    for file in (root / FOLDER / TURNS).glob("*"):
        with suppress(OSError):
            if file.stat().st_mtime < before:
                file.unlink()


def _failure(root: Path) -> Mapping[str, object]:
    file = root / FOLDER / FAILED
    try:
        loaded = json.loads(file.read_bytes()) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, Mapping) else {}


def _valid(text: str) -> str:
    """Write a text without surrogates, which may stand in JSON and nowhere else."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob(f"{_PREFIX}*.jsonl")) if file.is_file()]


def _taken(folder: Path) -> Path:
    return folder / f"{_PREFIX}{time.time_ns()}-{os.getpid()}.jsonl"


def _used(reserve: Path) -> bool:
    """Whether anything stands in the reserve; the lines come first."""
    try:
        if not stat.S_ISREG(reserve.lstat().st_mode):
            return False
        with reserve.open("rb") as file:
            return file.read(1) not in (b"", b"\n")
    except OSError:
        return False


def _lines(file: Path) -> list[bytes]:
    try:
        return [line for line in file.read_bytes().split(b"\n") if line.strip()] if file.is_file() else []
    except FileNotFoundError:
        return []


def _event(line: bytes) -> Event | None:
    try:
        loaded = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, Mapping):
        return None
    at, transcript = loaded.get("at"), loaded.get("transcript")
    if not isinstance(at, int) or not isinstance(transcript, str) or not transcript or "\0" in transcript:
        return None
    names = [loaded.get(key) for key in ("hook", "harness", "session", "cwd")]
    hook, harness, session, cwd = (name if isinstance(name, str) else "" for name in names)
    return Event(line, at, hook, harness, session, transcript, cwd)


def _write(path: Path, lines: Sequence[bytes], flag: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0) | flag, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.writelines(line + b"\n" for line in lines)
        out.flush()
        os.fsync(out.fileno())
