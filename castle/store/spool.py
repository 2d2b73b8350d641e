"""The spool of a palace: events that hooks have noted and that wait to be drained.

``events.jsonl`` is what hooks append to. A drainer renames it to ``drain-….jsonl`` before it reads it, so
that nothing is added to what it works on; a file of that name which is left behind by a crash is drained by
the next one. Lines that are no event are moved to ``unreadable.jsonl``. ``failed.json`` is there while the
last save of some session has failed: the beginning of a session reads it, which cannot open the ledger.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER = "spool"
FILE = "events.jsonl"
UNREADABLE = "unreadable.jsonl"
FAILED = "failed.json"
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
        return (root / FOLDER / FILE).stat().st_size > 0
    except OSError:
        return False


def waiting(root: Path) -> int:
    """Count the events that wait in the spool of the palace at ``root``."""
    return sum(len(_lines(file)) for file in _files(root / FOLDER, taken_too=True))


def take(root: Path) -> tuple[Path, ...]:
    """Take what hooks have appended out of their reach; return the files to be drained, leftovers too.

    The caller holds the drainer's lock.
    """
    folder = root / FOLDER
    current = folder / FILE
    if current.is_file():
        current.rename(folder / f"{_PREFIX}{time.time_ns()}-{os.getpid()}.jsonl")
    return tuple(_files(folder, taken_too=False))


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
    if unreadable:
        _write(folder / UNREADABLE, unreadable, os.O_APPEND)
    if kept:
        target = folder / f"{_PREFIX}{time.time_ns()}-{os.getpid()}.jsonl"
        draft = target.with_suffix(".tmp")
        _write(draft, [event.line for event in kept], os.O_TRUNC)
        draft.replace(target)
    for file in files:
        file.unlink()


def unnoted(root: Path) -> Event | None:
    """Return the event that ``failed.json`` holds, for which the spool had no room."""
    loaded = _failure(root)
    return _event(json.dumps(loaded).encode("ascii")) if loaded.get("unnoted") is True else None


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
    try:
        loaded = json.loads((root / FOLDER / FAILED).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, Mapping) else {}


def _files(folder: Path, *, taken_too: bool) -> list[Path]:
    names = sorted(folder.glob(f"{_PREFIX}*.jsonl"))
    return [*names, folder / FILE] if taken_too else names


def _lines(file: Path) -> list[bytes]:
    try:
        return [line for line in file.read_bytes().split(b"\n") if line.strip()]
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
