"""Checksums of an index's files, which its library does not compare when it opens them.

``castle.sums`` in the directory has one line for each file: CRC-32, size, time of change, name. Whoever has
written files adds their lines; the last one of a name counts. A file whose size and time are as noted is not
read again, and one that was never noted, because its writer was killed, is taken as it is.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = "castle.sums"
_PART = 1 << 20
_SPARE = 64


@dataclass(frozen=True, slots=True)
class _Noted:
    crc: int
    size: int
    changed: int


class Sums:
    """The checksums of the files below ``directory``, without ``passed_over`` ones and hidden ones.

    Files of the ``changing`` names are noted anew each time; every other file never changes once it is
    written.
    """

    def __init__(
        self, directory: Path, *, changing: Collection[str] = (), passed_over: Collection[str] = ()
    ) -> None:
        self._directory = directory
        self._changing = frozenset(changing)
        self._passed_over = frozenset(passed_over) | {NAME}

    def note(self) -> None:
        """Note files that are new; the caller has written them and holds the lock. Never raises OSError."""
        with suppress(OSError):
            known, files = self._known(), dict(self._files())
            lines = []
            for name, path in files.items():
                if name not in known or name in self._changing:
                    status = path.stat()
                    known[name] = _Noted(_crc(path), status.st_size, status.st_mtime_ns)
                    lines.append(_line(name, known[name]))
            if len(known) > 2 * len(files) + _SPARE:
                self._rewrite([_line(name, known[name]) for name in files])
            elif lines:
                self._append(lines)

    def damaged(self, *, thorough: bool = False) -> list[str]:
        """Return the names of files that are not as they were noted; ``thorough`` reads all of them."""
        known = self._known()
        found = []
        for name, path in self._files():
            noted = known.get(name)
            with suppress(OSError):
                if noted is not None and not _is_as_noted(path, noted, thorough):
                    found.append(name)
        return sorted(found)

    def names(self) -> set[str]:
        """Return the names of all files that were noted."""
        return set(self._known())

    def _files(self) -> Iterator[tuple[str, Path]]:
        for place, _, names in os.walk(self._directory):
            for name in names:
                path = Path(place) / name
                relative = path.relative_to(self._directory).as_posix()
                if not name.startswith(".") and relative not in self._passed_over:
                    yield relative, path

    def _known(self) -> dict[str, _Noted]:
        known: dict[str, _Noted] = {}
        with suppress(OSError):
            text = (self._directory / NAME).read_text(encoding="utf-8", errors="replace")
            # What follows the last line end is a line that was cut off.
            for line in text.split("\n")[:-1]:
                with suppress(ValueError):
                    crc, size, changed, name = line.split(" ", 3)
                    known[name] = _Noted(int(crc, 16), int(size), int(changed))
        return known

    def _append(self, lines: list[str]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(self._directory / NAME, flags, 0o600), "wb") as out:
            # It begins with a line end, so that a line which was cut off spoils no other.
            out.write("\n".join(["", *lines, ""]).encode("utf-8"))

    def _rewrite(self, lines: list[str]) -> None:
        draft = self._directory / f".{NAME}"
        draft.touch(mode=0o600)
        draft.write_text("\n".join([*lines, ""]), encoding="utf-8")
        draft.replace(self._directory / NAME)


def _is_as_noted(path: Path, noted: _Noted, thorough: bool) -> bool:
    status = path.stat()
    if status.st_size != noted.size:
        return False
    return (not thorough and status.st_mtime_ns == noted.changed) or _crc(path) == noted.crc


def _line(name: str, noted: _Noted) -> str:
    return f"{noted.crc:08x} {noted.size} {noted.changed} {name}"


def _crc(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while part := file.read(_PART):
            found = zlib.crc32(part, found)
    return found
