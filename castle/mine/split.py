"""Cutting a file that holds several terminal sessions, one after the other, into one file for each.

Every byte of the file is in exactly one piece; the pieces in order are the file. What stands before the first
session belongs to it. Files are read in bounded memory, however long they or their lines are.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from castle.errors import CastleError, UsageError
from castle.mine.read import open_regular, unreadable
from castle.records import Skipped
from castle.text.served import mask_secrets

BACKUP = ".mega_backup"
_LONGEST_NAME = 255
SUFFIX = ".txt"

_START = b"Claude Code v"
_NO_START = (b"Ctrl+E", b"previous messages")
_LOOKAHEAD = 6
_LINE_BYTES = 1 << 16
_COPY_BYTES = 1 << 20
_TIME_LINES = 50
_HEAD_LINES = 100
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_STEM, _SUBJECT, _PEOPLE = 40, 60, 3

_TIME = re.compile(
    r"⏺\s+(\d{1,2}):(\d{2})\s*([AP]M)\s+\w+,\s+([A-Z][a-z]+)\s+(\d{1,2}),\s+(\d{4})", re.IGNORECASE
)
_PROMPT = re.compile(r"^> +(\S.*)$")
_SHELL = re.compile(
    r"^(?:[./~$!]|(?:cd|ls|cat|git|python3?|pip3?|npm|npx|node|make|curl|ssh|scp|sudo|docker|cargo|go|uv|vim|nano"
    r"|rm|cp|mv|mkdir|echo|export|source|grep|find|tail|head|brew|apt)\b)"
)
_HOME = re.compile(r"/(?:Users|home)/([\w.-]+)")
_UNSAFE = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """One session: bytes ``[start, end)`` of the file, and the file they are written to."""

    path: Path
    start: int
    end: int
    lines: int


@dataclass(frozen=True, slots=True)
class SplitFile:
    """A file that was split; ``backup`` is what it is called since, None where it stayed as it was."""

    path: Path
    pieces: tuple[Piece, ...]
    backup: Path | None


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What was split, what had too few sessions, and what could not be read."""

    split: tuple[SplitFile, ...]
    single: tuple[Path, ...]
    skipped: tuple[Skipped, ...]
    dry_run: bool


@dataclass(slots=True)
class _Session:
    """A session as the scan sees it; ``people`` and ``user`` come from its first hundred lines."""

    start: int
    end: int = 0
    lines: int = 0
    when: str = ""
    subject: str = ""
    people: list[str] = field(default_factory=list)

    def look(self, line: str, names: re.Pattern[str] | None, people: Mapping[str, str]) -> None:
        """Take what a line among the first says of the session."""
        if self.lines <= _TIME_LINES and not self.when:
            self.when = _when(line)
        if not self.subject:
            prompt = _PROMPT.match(line)
            if prompt and not _SHELL.match(prompt.group(1)):
                self.subject = mask_secrets(prompt.group(1), b"")  # it becomes the name of a file
        if self.lines > _HEAD_LINES or len(self.people) >= _PEOPLE:
            return
        found = names.findall(line) if names is not None else []
        found += [people[user] for user in _HOME.findall(line) if user in people]
        for name in found:
            if name not in self.people and len(self.people) < _PEOPLE:
                self.people.append(name)


def split(
    directory: Path,
    *,
    output: Path | None = None,
    dry_run: bool = False,
    min_sessions: int = 2,
    names: Sequence[str] = (),
    usernames: Mapping[str, str] | None = None,
) -> SplitReport:
    """Split the ``.txt`` files of a directory, or one file, that hold at least ``min_sessions`` sessions.

    Without ``output`` the pieces are written beside the file, which is then renamed to ``*.mega_backup``;
    with it the file stays as it is. ``names`` are people to look for, ``usernames`` says whose login is
    whose. Raises UsageError when there is nothing at the path.
    """
    files = _files(directory)
    pattern = _any_of(names)
    done: list[SplitFile] = []
    single: list[Path] = []
    skipped: list[Skipped] = []
    for path in files:
        opened = open_regular(path)
        if isinstance(opened, Skipped):
            skipped.append(opened)
            continue
        try:
            with opened as file:
                sessions, digest = _scan(file, pattern, usernames or {})
                if len(sessions) < max(2, min_sessions):
                    single.append(path)
                    continue
                target = output if output is not None else path.parent
                pieces = _named(path, sessions, target)
                if not dry_run:
                    target.mkdir(parents=True, exist_ok=True)
                    pieces = _write(file, pieces, digest)
            backup = _set_aside(path, dry_run, pieces) if output is None else None
            done.append(SplitFile(path, tuple(pieces), backup))
        except OSError as error:
            skipped.append(unreadable(str(path), error))
        except _ChangedError as error:
            skipped.append(Skipped(str(path), "changed", str(error)))
    return SplitReport(tuple(done), tuple(single), tuple(skipped), dry_run)


class _ChangedError(CastleError):
    """The file was written while it was split."""


def _files(directory: Path) -> list[Path]:
    if directory.is_dir():
        return sorted(path for path in directory.iterdir() if path.suffix == SUFFIX and not path.is_dir())
    if directory.exists() or directory.is_symlink():
        return [directory]
    raise UsageError(f"nothing at {directory}: name a directory with .txt files, or one file")


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield the file in lines, cut where they are very long, and whether each begins a line."""
    begins = True
    while piece := file.readline(_LINE_BYTES):
        yield piece, begins
        begins = piece.endswith(b"\n")


def _scan(
    file: BinaryIO, names: re.Pattern[str] | None, people: Mapping[str, str]
) -> tuple[list[_Session], bytes]:
    """Find the sessions, and the hash of the whole file."""
    digest = hashlib.sha256()
    sessions: list[_Session] = []
    starts = _starts(file)
    current = _Session(0)
    for offset, piece, begins, is_start in starts:
        digest.update(piece)
        if is_start and not sessions:
            sessions.append(current)
        elif is_start:
            current.end = offset
            current = _Session(offset)
            sessions.append(current)
        current.lines += begins
        current.look(piece.decode("utf-8", "replace").rstrip("\r\n"), names, people)
        current.end = offset + len(piece)
    return sessions, digest.digest()


def _starts(file: BinaryIO) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Yield the lines with their offsets, and whether each starts a session, which six more lines decide."""
    waiting: list[tuple[int, bytes, bool]] = []
    offset = 0
    for piece, begins in _lines(file):
        waiting.append((offset, piece, begins))
        offset += len(piece)
        if len(waiting) > _LOOKAHEAD:
            yield _decided(waiting)
    while waiting:
        yield _decided(waiting)


def _decided(waiting: list[tuple[int, bytes, bool]]) -> tuple[int, bytes, bool, bool]:
    following = [piece for _, piece, _ in waiting[1 : _LOOKAHEAD + 1]]
    offset, piece, begins = waiting.pop(0)
    repeated = any(sign in line for line in following for sign in _NO_START)
    return offset, piece, begins, begins and _START in piece and not repeated


def _named(path: Path, sessions: Sequence[_Session], target: Path) -> list[Piece]:
    """Give every session a file of its own, numbered where names collide."""
    taken: set[str] = set()
    pieces = []
    for number, session in enumerate(sessions, start=1):
        people = "-".join(_safe(name, _STEM) for name in session.people) or "unknown"
        parts = (
            _safe(path.stem, _STEM) or "session",
            session.when or f"part{number:02}",
            f"{people}_{_safe(session.subject, _SUBJECT) or 'session'}",
        )
        base = f"{parts[0]}__{parts[1]}_{parts[2]}"
        name, again = base, 2
        while name.casefold() in taken or os.path.lexists(target / f"{name}{SUFFIX}"):
            name, again = f"{base}_{again}", again + 1
        taken.add(name.casefold())
        pieces.append(Piece(target / f"{name}{SUFFIX}", session.start, session.end, session.lines))
    return pieces


def _write(file: BinaryIO, pieces: Sequence[Piece], digest: bytes) -> list[Piece]:
    """Write the pieces; takes them away again when the file is not what was scanned or the disk is full."""
    mode = os.fstat(file.fileno()).st_mode & 0o777
    written: list[Path] = []
    copied = hashlib.sha256()
    file.seek(0)
    try:
        for piece in pieces:
            with os.fdopen(os.open(piece.path, _NEW, mode), "wb") as out:
                written.append(piece.path)
                left = piece.end - piece.start
                while left and (data := file.read(min(left, _COPY_BYTES))):
                    copied.update(data)
                    out.write(data)
                    left -= len(data)
                out.flush()
                os.fsync(out.fileno())
        if file.read(1) or copied.digest() != digest:
            raise _ChangedError("it was written while it was split; run the command again")
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return list(pieces)


def _set_aside(path: Path, dry_run: bool, pieces: Sequence[Piece]) -> Path:
    """Rename the file that was split, replacing nothing; where that fails, take the pieces away again."""
    stem = path.stem
    while len(os.fsencode(stem)) > _LONGEST_NAME - len(BACKUP) - 5:
        stem = stem[:-1]
    number = 1
    backup = path.with_name(stem + BACKUP)
    while os.path.lexists(backup):
        number += 1
        backup = path.with_name(f"{stem}.{number}{BACKUP}")
    if not dry_run:
        try:
            path.rename(backup)
        except OSError:
            for piece in pieces:
                piece.path.unlink(missing_ok=True)
            raise
    return backup


def _when(line: str) -> str:
    match = _TIME.search(line)
    if match is None:
        return ""
    hour, minute, half, month, day, year = match.groups()
    try:
        moment = datetime.strptime(f"{year} {month} {day} {hour}:{minute} {half}", "%Y %B %d %I:%M %p")
    except ValueError:
        return ""
    return moment.strftime("%Y-%m-%d_%H%M")


def _any_of(names: Sequence[str]) -> re.Pattern[str] | None:
    known = sorted({name for name in names if name.strip()}, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, known))})(?!\w)") if known else None


def _safe(text: str, most: int) -> str:
    return _UNSAFE.sub("-", text).strip("-")[:most].strip("-")
