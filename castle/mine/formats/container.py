"""Files, folders and zips as places to read transcripts from; nothing is ever written or unpacked to disk."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from castle.mine.formats.base import HEAD_BYTES, Box, Format, Transcript
from castle.mine.formats.values import READ_ERRORS

SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Folders of other tools, in which no transcripts are looked for."""


NO_TRANSCRIPT = "no transcript"
"""Why a file is not read in which no format finds a conversation."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A file in which no transcript was found, and why; ``failed`` when it could not even be looked at."""

    address: str
    reason: str
    failed: bool = False


def _open_regular(path: Path) -> IO[bytes]:
    """Open a regular file; a pipe, device or link is refused without waiting on it."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"not a regular file: {path}")
    return os.fdopen(descriptor, "rb")


@dataclass(slots=True)
class Single:
    """One file; its name inside is its file name."""

    path: Path

    def names(self) -> Sequence[str]:
        """List the one name."""
        return (self.path.name,)

    def open(self, name: str) -> IO[bytes]:
        """Open the file."""
        return _open_regular(self.path)

    def local(self, name: str) -> Path | None:
        """Return the path."""
        return self.path

    def address(self, name: str) -> str:
        """Return the path."""
        return str(self.path)


class Folder:
    """A folder with all below it; links are not followed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unread: list[Unread] = []
        self._names: list[str] | None = None

    def names(self) -> Sequence[str]:
        """List the regular files below; what else stands there is noted in ``unread``."""
        if self._names is None:
            self._names = sorted(self._walk())
        return self._names

    def _walk(self) -> Iterator[str]:
        def failed(error: OSError) -> None:
            self.unread.append(Unread(str(error.filename), f"cannot be listed: {error.strerror}", True))

        for base, folders, files in os.walk(self.path, onerror=failed):
            folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
            for name in sorted(files):
                path = Path(base) / name
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode):
                    yield path.relative_to(self.path).as_posix()
                else:
                    what = "a link" if stat.S_ISLNK(mode) else "not a regular file"
                    self.unread.append(Unread(str(path), what))

    def open(self, name: str) -> IO[bytes]:
        """Open a file below the folder."""
        return _open_regular(self.path / name)

    def local(self, name: str) -> Path | None:
        """Return the path of a file below the folder."""
        return self.path / name

    def address(self, name: str) -> str:
        """Return the path of a file below the folder."""
        return str(self.path / name) if name else str(self.path)


class Archive:
    """A zip, read in place: members are streams, their names never become paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open_regular(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except BaseException:
            self._file.close()
            raise
        self._names = sorted({info.filename for info in self._zip.infolist() if not info.is_dir()})

    def names(self) -> Sequence[str]:
        """List the members that are files."""
        return self._names

    def open(self, name: str) -> IO[bytes]:
        """Open a member as a stream."""
        try:
            return self._zip.open(name)
        except (RuntimeError, NotImplementedError, KeyError, ValueError) as error:
            raise OSError(str(error)) from error

    def local(self, name: str) -> Path | None:
        """Return None: a member has no path."""
        return None

    def address(self, name: str) -> str:
        """Return the path of the zip and the name of the member."""
        return f"{self.path}!/{name}"

    def close(self) -> None:
        """Close the zip."""
        self._zip.close()
        self._file.close()


class Container:
    """What is found at a path: iterate for ``Transcript`` and ``Unread``; close it after reading."""

    def __init__(self, path: Path, known: Sequence[Format]) -> None:
        self.path = path
        self._known = known
        self._archives: list[Archive] = []

    def __enter__(self) -> Container:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the zips that were opened; transcripts inside them cannot be read any more."""
        while self._archives:
            self._archives.pop().close()

    def __iter__(self) -> Iterator[Transcript | Unread]:
        try:
            if self.path.is_dir():
                yield from self._folder(Folder(self.path))
            elif self.path.is_file() and zipfile.is_zipfile(self.path):
                yield from self._zip(self.path.resolve())
            else:
                yield self._one(Single(self.path.resolve()), self.path.name)
        except READ_ERRORS as error:
            yield Unread(str(self.path), f"cannot be read: {error}", True)

    def _folder(self, box: Folder) -> Iterator[Transcript | Unread]:
        yield from self._files(box)
        yield from box.unread

    def _zip(self, path: Path) -> Iterator[Transcript | Unread]:
        archive = Archive(path)
        self._archives.append(archive)
        yield from self._files(archive)

    def _files(self, box: Box) -> Iterator[Transcript | Unread]:
        names = box.names()
        taken: set[str] = set()
        for format in self._known:
            for root, members in format.roots(names).items():
                if taken.isdisjoint(members):
                    taken.update(members)
                    yield Transcript(box, root, format)
        for name in names:
            if name in taken:
                continue
            path = box.local(name)
            if name.lower().endswith(".zip") and path is not None and zipfile.is_zipfile(path):
                try:
                    yield from self._zip(path)
                except READ_ERRORS as error:
                    yield Unread(str(path), f"cannot be read: {error}", True)
            else:
                yield self._one(box, name)

    def _one(self, box: Box, name: str) -> Transcript | Unread:
        try:
            with box.open(name) as stream:
                head = stream.read(HEAD_BYTES)
        except READ_ERRORS as error:
            return Unread(box.address(name), f"cannot be read: {error}", True)
        if head.startswith(b"PK\x03\x04"):  # members that are not compressed look like transcripts
            what = "a zip inside a zip" if box.local(name) is None else "a zip that is damaged or cut off"
            return Unread(box.address(name), what)
        for format in self._known:
            if format.detect(name, head):
                return Transcript(box, name, format)
        return Unread(box.address(name), NO_TRANSCRIPT if head else "empty")
