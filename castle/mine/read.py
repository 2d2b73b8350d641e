"""Reading sources: opening them safely and streaming them as text from which the exact bytes can be had back.

Text is cut into blocks, and each block is kept in two forms: the bytes, and a working string that has one
character for every character of the text and one for every byte that the encoding cannot explain. A position
in the text therefore has one position in the bytes, and slices that lie side by side in the text lie side by
side in the bytes.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import io
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from castle.errors import UsageError
from castle.mine.encodings import Encoding, refine
from castle.records import Skipped
from castle.store.projects import path_text

BLOCK_BYTES = 1024 * 1024
NUL_SHOWN = "\u2400"
INVALID_SHOWN = "\ufffd"

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_ESCAPE = "castle-escape"
_ESCAPED = re.compile("[\udc00-\udcff]")
_UNSHOWABLE = re.compile("[\x00\ud800-\udfff]")


def existing(path: Path) -> Path:
    """Return a path that a user gave as the system knows it, links followed.

    Raises UsageError when there is nothing.
    """
    try:
        return path.expanduser().resolve(strict=True)
    except OSError as error:
        why = error.strerror or type(error).__name__
    except RuntimeError:
        why = "a loop of links, or no such user"
    except ValueError:
        why = "no path has such characters"
    raise UsageError(f"nothing to file at {path_text(path)}: {why}")


def open_regular(
    path: Path | bytes, *, dir_fd: int | None = None, shown: str | None = None
) -> io.FileIO | Skipped:
    """Open a regular file for reading, or return why it is not read.

    Links are not followed, and nothing blocks: a FIFO, socket or device is turned down by what the open
    descriptor says. With ``dir_fd``, ``path`` is relative to that directory. ``shown`` is the path for the
    report.
    """
    name = shown if shown is not None else display(os.fsencode(path))
    try:
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        refusal = irregular(status.st_mode)
        if refusal:
            return Skipped(name, refusal)
        descriptor = os.open(path, _OPEN_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Skipped(name, "symlink")
        return unreadable(name, error)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return Skipped(name, "not a regular file")
    return io.FileIO(descriptor, "rb")


def irregular(mode: int) -> str:
    """Return why an entry with this mode is not read as a file, empty for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    return "symlink" if stat.S_ISLNK(mode) else "not a regular file"


def unreadable(shown: str, error: OSError) -> Skipped:
    """Return the report of something the system would not let be read."""
    return Skipped(shown, "unreadable", error.strerror or type(error).__name__)


def display(raw: bytes) -> str:
    r"""Return a name as valid Unicode; bytes that are not UTF-8 are shown as ``\xNN``."""
    return raw.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a source's text: valid Unicode without NUL. ``start`` counts characters of the source."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the next block begins."""
        return self.start + len(self.text)


class SourceReader:
    """Streams one opened source as blocks of text and gives the exact bytes of any slice back.

    Blocks come in order and end at the end of a line where there is one in their second half, never inside a
    character or between CR and LF. What was read stays available to ``raw_of`` and ``exact`` until
    ``release``; a caller that releases what it has filed needs memory for a few blocks, whatever the size of
    the file. ``sha256`` and ``size`` describe the bytes read so far, which is all of them once ``blocks`` is
    exhausted.
    """

    def __init__(self, file: BinaryIO, encoding: Encoding, *, block_bytes: int = BLOCK_BYTES) -> None:
        self.size = 0
        self._file = file
        self._encoding = encoding
        self._seen = [encoding.label]
        self._block_bytes = max(8, block_bytes)
        self._digest = hashlib.sha256()
        self._windows: deque[_Window] = deque()
        self._before = _signature(file)
        self._invalid = 0
        self._nuls = 0
        self._finished = False

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes read so far, in hex."""
        return self._digest.hexdigest()

    @property
    def encoding(self) -> str:
        """The encoding the text was read in; the last one, when the file is of several."""
        return self._encoding.label

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user may want to know about how the bytes became text."""
        found = [f"decoded as {label}" for label in self._seen if label != "utf-8"]
        if self._invalid:
            found.append(f"bytes that are not valid {self.encoding}, shown as U+FFFD: {self._invalid:,}")
        if self._nuls:
            found.append(f"NUL characters, shown as U+2400: {self._nuls:,}")
        return tuple(found)

    @property
    def changed(self) -> bool:
        """Whether the file changed while it was read, as far as its size and time tell."""
        after = _signature(self._file)
        return after != self._before or (self._finished and after is not None and after[0] != self.size)

    def blocks(self) -> Iterator[Block]:
        """Yield the text; raise OSError when the system fails to read on."""
        carry, start = b"", 0
        while not self._finished:
            fresh = self._fill(self._block_bytes)
            self._finished = len(fresh) < self._block_bytes
            self._digest.update(fresh)
            self.size += len(fresh)
            data = carry + fresh
            if not data:
                return
            window = self._window(data, start)
            carry = b"" if self._finished else window.give_up_tail()
            if window.working:
                self._count(window)
                self._windows.append(window)
                yield Block(window.text(0, len(window.working)), start)
                start = window.end

    def raw_of(self, start: int, end: int) -> bytes | None:
        """Return the bytes of ``[start, end)`` if UTF-8 of that text does not give them back, else None."""
        parts = [
            (window, max(start, window.start) - window.start, min(end, window.end) - window.start)
            for window in self._reach(start, end)
        ]
        if all(window.plain for window, _, _ in parts):
            return None
        exact = b"".join(window.exact(first, last) for window, first, last in parts)
        text = "".join(window.text(first, last) for window, first, last in parts)
        return None if text.encode("utf-8") == exact else exact

    def exact(self, start: int, end: int) -> bytes:
        """Return the bytes of ``[start, end)``; slices side by side give bytes side by side."""
        return b"".join(
            window.exact(max(start, window.start) - window.start, min(end, window.end) - window.start)
            for window in self._reach(start, end)
        )

    def release(self, offset: int) -> None:
        """Forget what lies before ``offset``, as far as whole blocks go."""
        while self._windows and self._windows[0].end <= offset:
            self._windows.popleft()

    def _reach(self, start: int, end: int) -> list[_Window]:
        if start >= end:
            return []
        found = [window for window in self._windows if window.start < end and start < window.end]
        if not found or found[0].start > start or found[-1].end < end:
            raise ValueError(f"characters {start} to {end} are not held: released, or not read yet")
        return found

    def _fill(self, amount: int) -> bytes:
        """Read exactly ``amount`` bytes, less only at the end."""
        parts, missing = [], amount
        while missing:
            part = self._file.read(missing)
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _window(self, data: bytes, start: int) -> _Window:
        if self._encoding.provisional and not data.isascii():
            self._encoding = refine(data, final=self._finished)
            self._seen = [self._encoding.label]
        window = _decode(data, self._encoding.codec, start, final=self._finished)
        if window is None:
            if "utf-8" not in self._seen:
                self._seen.append("utf-8")
            window = _decode(data, "utf-8", start, final=self._finished)
        assert window is not None, "UTF-8 with escapes fits every sequence of bytes"
        return window

    def _count(self, window: _Window) -> None:
        if window.plain:
            return
        self._nuls += window.working.count("\0")
        self._invalid += len(_ESCAPED.findall(window.working))


class _Window:
    """One block: its working string and its bytes. Offsets given to its methods count from its own start."""

    __slots__ = ("_bytes_at", "_chars_at", "codec", "data", "escapes", "plain", "start", "working")

    def __init__(self, working: str, data: bytes, codec: str, start: int) -> None:
        self.working = working
        self.data = data
        self.codec = codec
        self.start = start
        self.escapes = _UNSHOWABLE.search(working) is not None
        self.plain = codec == "utf-8" and not self.escapes
        self._chars_at = 0
        self._bytes_at = 0

    @property
    def end(self) -> int:
        """Where it ends in the source's text."""
        return self.start + len(self.working)

    def text(self, start: int, end: int) -> str:
        """Return the text as it is shown."""
        piece = self.working[start:end]
        return _UNSHOWABLE.sub(_shown, piece) if self.escapes else piece

    def exact(self, start: int, end: int) -> bytes:
        """Return the bytes of a slice."""
        return self.data[self._offset(start) : self._offset(end)]

    def give_up_tail(self) -> bytes:
        """Cut what comes after the last good place for a boundary, and return its bytes."""
        cut = max(self.working.rfind("\n"), self.working.rfind("\r", 0, -1)) + 1
        if cut <= len(self.working) // 2:
            cut = len(self.working) - self.working.endswith("\r")
        kept = self._offset(cut)
        tail = self.data[kept:]
        self.working, self.data = self.working[:cut], self.data[:kept]
        return tail

    def _offset(self, char: int) -> int:
        """Return the byte at which a character begins, counted on from the last one asked for."""
        if char < self._chars_at:
            self._chars_at = self._bytes_at = 0
        self._bytes_at += _width(self.working[self._chars_at : char], self.codec)
        self._chars_at = char
        return min(self._bytes_at, len(self.data))


def _decode(data: bytes, codec: str, start: int, *, final: bool) -> _Window | None:
    """Decode a block; an incomplete character at its end is left to the bytes. None if the codec misfits."""
    decoder = codecs.getincrementaldecoder(codec)("surrogateescape" if codec == "utf-8" else _ESCAPE)
    try:
        working = decoder.decode(data, final)
        if codec == "utf-8":
            return _Window(working, data, codec, start)
        pending = decoder.getstate()[0] if not final else b""
        if _width(working, codec) + len(pending) != len(data):
            return None
    except UnicodeError:
        return None
    return _Window(working, data, codec, start)


def _width(working: str, codec: str) -> int:
    """Return how many bytes stand behind a piece of a working string."""
    if working.isascii() and codec not in _WIDE:
        return len(working)
    if codec == "utf-8":
        return len(working.encode("utf-8", "surrogateescape"))
    plain = _ESCAPED.sub("", working)
    return len(plain.encode(codec)) + len(working) - len(plain)


_WIDE = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})


def _shown(match: re.Match[str]) -> str:
    return NUL_SHOWN if match.group() == "\0" else INVALID_SHOWN


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Decode every byte that has no meaning to a lone surrogate of its own, U+DC00 plus its value."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


def _signature(file: BinaryIO) -> tuple[int, int] | None:
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


codecs.register_error(_ESCAPE, _escape)
