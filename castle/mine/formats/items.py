"""Reading an export that is one JSON document: a list is cut into its items as it streams in."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from castle.mine.formats.base import Broken, Event, Transcript
from castle.mine.formats.lines import parse
from castle.mine.formats.values import READ_ERRORS

MAX_ITEM = 512 * 1024 * 1024
"""An item of more characters is reported and passed over."""

_CHUNK = 1 << 20
# Whole strings and everything without structure are passed over in one step. Commas count between items only.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BETWEEN = re.compile(rf'(?:[^"\[\]{{}},]++|{_STRING})*+(["\[\]{{}},])', re.DOTALL)
_DEEPER = re.compile(rf'(?:[^"\[\]{{}}]++|{_STRING})*+(["\[\]{{}}])', re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}:]", re.DOTALL)
_INSIDE = re.compile(r'["\\]')
_STRAY = re.compile("[\udc80-\udcff]")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(slots=True)
class _Cutter:
    """Finds where the items of a JSON list end; knows strings and brackets and nothing else."""

    depth: int = 0
    in_string: bool = False
    after_backslash: bool = False
    ended: bool = False
    size: int = 0
    parts: list[str] = field(default_factory=list)

    def feed(self, chunk: str) -> Iterator[str | None]:
        """Yield each item that ends in this chunk, None for one that is too long."""
        start = position = 0
        while not self.ended and position < len(chunk):
            if self.in_string:
                position = self._through_string(chunk, position)
                continue
            found = (_BETWEEN if self.depth == 1 else _DEEPER).match(chunk, position)
            if found is None:
                break
            position = found.end()
            mark = found[1]
            if mark == '"':
                self.in_string = True
            elif mark in "[{":
                self.depth += 1
                if self.depth == 1:
                    start = position
            elif mark in "]}":
                self.depth -= 1
                self.ended = self.depth == 0
            if self.ended or (mark == "," and self.depth == 1):
                yield self._take(chunk[start : found.start(1)])
                start = position
        self._keep(chunk[start:])

    def _through_string(self, chunk: str, position: int) -> int:
        if self.after_backslash:
            self.after_backslash = False
            return position + 1
        found = _INSIDE.search(chunk, position)
        if found is None:
            return len(chunk)
        if found.group() == '"':
            self.in_string = False
        else:
            self.after_backslash = True
        return found.end()

    def _keep(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_ITEM:
            self.parts = []
        else:
            self.parts.append(text)

    def _take(self, text: str) -> str | None:
        too_long = self.size + len(text) > MAX_ITEM
        item = self.left() + text
        self.parts, self.size = [], 0
        return None if too_long else item

    def left(self) -> str:
        """Return what has been read of an unfinished item."""
        return "".join(self.parts)


def _chunks(stream: IO[bytes]) -> Iterator[str]:
    first = stream.read(_CHUNK)
    encoding = next((name for bom, name in _BOMS if first.startswith(bom)), "utf-8")
    errors = "surrogateescape" if encoding.startswith("utf-8") else "surrogatepass"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    data = first
    while data:
        yield decoder.decode(data)
        data = stream.read(_CHUNK)
    yield decoder.decode(b"", final=True)


def _texts(stream: IO[bytes]) -> Iterator[tuple[int, str | None, str]]:
    """Yield (number, text, problem): the items of a list, or the one document that is no list."""
    chunks = _chunks(stream)
    opening = ""
    for opening in chunks:
        if opening.strip():
            break
    if not opening.lstrip().startswith("["):
        parts, size = [opening], len(opening)
        for chunk in chunks:
            size += len(chunk)
            if size > MAX_ITEM:
                yield 1, None, f"document of more than {MAX_ITEM} characters"
                return
            parts.append(chunk)
        yield 1, "".join(parts), ""
        return
    cutter = _Cutter()
    number = 0
    for chunk in _chained(opening, chunks):
        for item in cutter.feed(chunk):
            if item is None or item.strip() or not cutter.ended:
                number += 1
                yield number, item, "" if item is not None else f"item of more than {MAX_ITEM} characters"
    rest = cutter.left()
    if rest.strip():
        yield number + 1, None, "text after the end of the list" if cutter.ended else "cut off before its end"
    elif not cutter.ended:
        yield number + 1, None, "the list is cut off before its end"


def _chained(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def read_items(
    transcript: Transcript, handle: Callable[[Any, int, bool], Iterable[Event]]
) -> Iterator[Event]:
    """Give every item of a list (or the whole document) to ``handle(value, number, escaped)``.

    An item that cannot be read becomes ``Broken``; it does not stop the others.
    """
    try:
        with transcript.open() as stream:
            for number, text, problem in _texts(stream):
                if text is None:
                    yield Broken(number, problem, "item")
                    continue
                try:
                    value = parse(text)
                    events = list(handle(value, number, _STRAY.search(text) is not None))
                except ValueError as error:
                    events = [Broken(number, f"not JSON: {error}", "item")]
                except RecursionError:
                    events = [Broken(number, "nested too deeply", "item")]
                yield from events
    except (*READ_ERRORS, UnicodeDecodeError) as error:
        yield Broken(0, f"cannot be read: {error}", "file", transcript.address)


def head_keys(head: bytes) -> frozenset[str]:
    """Return the keys in a file's head that belong to its JSON object, or to the objects of its list."""
    text = next(_chunks(io.BytesIO(head))).lstrip("\ufeff")
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return frozenset()
    wanted, depth, last = (1 if start == "{" else 2), 0, ""
    keys: set[str] = set()
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark[0] == '"':
            last = mark[1:-1]
        elif mark == ":":
            keys.update((last,) if depth == wanted else ())
        else:
            depth += 1 if mark in "[{" else -1
    return frozenset(keys)


def load_document(stream: IO[bytes]) -> tuple[Any, bool]:
    """Parse a small JSON file whole; raises ValueError, and the second value tells of stray bytes."""
    text = "".join(_chunks(stream))
    return parse(text), _STRAY.search(text) is not None
