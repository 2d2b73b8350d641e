"""Looking for purged text in files, and taking it out of those that Castle keeps beside the ledger."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.errors import PalaceError
from castle.store.ledger import FILE_NAME
from castle.store.migrate import FOLDER as BACKUPS
from castle.store.migrate import copies
from castle.store.palace import TOKEN_CACHE
from castle.store.spool import FOLDER as SPOOL
from castle.store.spool import take

PIECE = 24
"""Bytes in a row by which a text is found."""

_BLOCK = 1 << 20
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
_KEPT = ("v", "at", "hook", "harness", "session", "transcript", "cwd")
"""What an event of the spool must have; all of it are names and places."""
PREPARED = ("wakeup.json", ".wakeup.json")
"""How the names of what is prepared for hooks begin, and of what a killed process has left of it."""


@dataclass(frozen=True, slots=True)
class Held:
    """How much of the texts a file holds: all or most of one, or at least a part of one."""

    most: bool
    part: bool


class Finder:
    """Finds texts in bytes by their pieces, as UTF-8, as UTF-16 and as JSON writes them."""

    def __init__(self, texts: Iterable[str], most: int = 1_000_000) -> None:
        """Of each text ``most`` pieces at most are looked for."""
        self._of: dict[bytes, list[int]] = {}
        self._most: list[int] = []
        for text in texts:
            for encoded in _encodings(text.strip()):
                pieces = [encoded[at : at + PIECE] for at in range(0, len(encoded) - PIECE + 1, PIECE)]
                if not pieces:
                    continue
                pieces = pieces[:: -(-len(pieces) // most)]
                for piece in pieces:
                    self._of.setdefault(piece, []).append(len(self._most))
                self._most.append((len(set(pieces)) + 1) // 2)

    def look(self, data: bytes) -> Held:
        """Look through bytes."""
        return self._judge(set(self._pieces(data)))

    def look_into(self, path: Path) -> Held:
        """Look through a file, a megabyte at a time. Raises OSError."""
        found: set[bytes] = set()
        before = b""
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(self._pieces(before + block))
                before = block[-PIECE + 1 :]
        return self._judge(found)

    def _judge(self, found: set[bytes]) -> Held:
        counts = Counter(number for piece in found for number in set(self._of[piece]))
        most = any(count >= self._most[number] for number, count in counts.items())
        return Held(most, bool(found))

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the pieces that stand in some bytes; a sum over each window tells most others apart."""
        if len(data) < PIECE or not self._of:
            return
        import numpy as np

        wanted = np.array([_sum(piece) for piece in self._of], dtype=np.uint32)
        codes = np.frombuffer(data, dtype=np.uint8).astype(np.uint32)
        sums = np.zeros(len(codes) - PIECE + 1, dtype=np.uint32)
        for place in range(PIECE):
            sums = sums * np.uint32(257) + codes[place : place + len(sums)]
        for place in np.flatnonzero(np.isin(sums, wanted)).tolist():
            piece = data[place : place + PIECE]
            if piece in self._of:
                yield piece


def _sum(piece: bytes) -> int:
    found = 0
    for byte in piece:
        found = (found * 257 + byte) & 0xFFFFFFFF
    return found


def _encodings(text: str) -> Iterator[bytes]:
    for encoding in _ENCODINGS:
        yield text.encode(encoding, "surrogatepass")
    for escaped in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        if escaped[1:-1] != text:
            yield escaped[1:-1].encode("utf-8", "surrogatepass")


def clean_directory(root: Path, finder: Finder) -> tuple[list[Path], list[Path]]:
    """Remove what holds the texts from everything in a palace but its ledger, its indexes and its spool.

    Copies of the ledger from before a migration, and what is prepared for hooks, go in any case. Returns the
    files that were removed, and those that are left although they hold a part of a text.
    """
    removed, left = [], []
    for path in [*copies(root), *sorted((root / BACKUPS).glob("*.draft*")), *root.glob(f"{FILE_NAME}.*")]:
        if _is_copy(path):
            path.unlink(missing_ok=True)
            removed.append(path)
    for path in _foreign(root):
        if path.name.startswith(PREPARED):
            path.unlink(missing_ok=True)
            continue
        held = finder.look_into(path)
        if held.most:
            path.unlink(missing_ok=True)
            removed.append(path)
        elif held.part:
            left.append(path)
    return removed, left


def _is_copy(path: Path) -> bool:
    return path.is_file() and (path.parent.name == BACKUPS or "backup" in path.name)


def _foreign(root: Path) -> Iterator[Path]:
    """Yield the regular files of a palace that no index and no database of Castle's consists of."""
    own = {FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", f"{FILE_NAME}-journal", TOKEN_CACHE}
    own.add(f"{TOKEN_CACHE}-journal")
    for place, folders, names in os.walk(root):
        here = Path(place)
        if here == root:
            folders[:] = [
                name
                for name in folders
                if name not in (SPOOL, "drawers.lance", "lexicon")
                and not name.startswith("lexicon.discarded-")
            ]
        for name in sorted(names):
            path = here / name
            if not (here == root and name in own) and not path.is_symlink() and path.is_file():
                yield path


def clean_spool(root: Path, finder: Finder) -> None:
    """Take the texts out of the spool; the caller holds the lock of whoever drains it.

    Of an event that waits, all that is needed to file its transcript is kept.
    """
    folder = root / SPOOL
    if not folder.is_dir():
        return
    events = set(take(root))
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if not data or not (finder.look(data).part or finder.look(_decoded(data)).part):
            continue
        lines = [
            line if not _holds(finder, line) else (_bare(line) if path in events else b"")
            for line in data.splitlines(keepends=True)
        ]
        if path in events:
            _replace(path, b"".join(lines))
        else:
            _rewrite(path, b"".join(lines))


def _holds(finder: Finder, line: bytes) -> bool:
    return finder.look(line).part or finder.look(_decoded(line)).part


def _decoded(data: bytes) -> bytes:
    """Return the texts in lines of JSON as UTF-8; nothing of lines that are none."""
    found: list[str] = []
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            found += _texts(json.loads(line))
    return "\n".join(found).encode("utf-8", "surrogatepass")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _bare(line: bytes) -> bytes:
    """Return an event with nothing but what is needed of it; a line that is none is dropped."""
    try:
        event = json.loads(line)
        kept = {key: event[key] for key in _KEPT if key in event}
    except (ValueError, TypeError, RecursionError):
        return b""
    return json.dumps(kept, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def _replace(path: Path, data: bytes) -> None:
    """Put another file in the place of one, so that a crash leaves one or the other."""
    draft = path.with_suffix(".tmp")
    try:
        draft.touch(mode=0o600)
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise PalaceError(f"{path} holds text that is to be purged and cannot be written: {error}") from error


def _rewrite(path: Path, data: bytes) -> None:
    """Put other bytes in the place of a file's; a log that somebody has open stays the same file."""
    try:
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise PalaceError(f"{path} holds text that is to be purged and cannot be written: {error}") from error
