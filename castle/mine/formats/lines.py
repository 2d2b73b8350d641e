"""Reading JSONL: one record a line, any byte offset a place to go on from, memory for one line at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol

from castle.mine.formats.base import Broken, Checkpoint, Event, Pending, Transcript
from castle.mine.formats.values import READ_ERRORS

MAX_LINE = 512 * 1024 * 1024
"""A longer line is reported and passed over; it bounds what a compressed file can grow to in memory."""

_BOM = b"\xef\xbb\xbf"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: its number from 1, where the next one starts, and its bytes without the line end."""

    number: int
    end: int
    data: bytes
    terminated: bool
    too_long: bool = False


class RecordReader(Protocol):
    """What a JSONL format does with each object; ``state`` is all it remembers between lines."""

    def record(self, value: Mapping[str, Any], line: Line, escaped: bool) -> Iterable[Event]:
        """Return the events of one object."""

    def state(self) -> dict[str, object]:
        """Return what a later reading must know."""


def raw_lines(stream: IO[bytes], offset: int, number: int) -> Iterator[Line]:
    """Split a stream, from an offset on, at line feeds; ``number`` is that of the first line."""
    stream.seek(offset)
    position = offset
    while True:
        data = stream.readline(MAX_LINE + 1)
        if not data:
            return
        position += len(data)
        too_long = len(data) > MAX_LINE and not data.endswith(b"\n")
        tail = data
        while too_long and tail and not tail.endswith(b"\n"):
            data = b""
            tail = stream.readline(_PIECE)
            position += len(tail)
        terminated = (tail or data).endswith(b"\n")
        yield Line(number, position, b"" if too_long else data.removesuffix(b"\n"), terminated, too_long)
        number += 1


def decode(data: bytes) -> tuple[str, bool]:
    """Decode UTF-8; stray bytes become U+DC80 to U+DCFF, and the second value tells that there were some."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), True


def parse(text: str) -> Any:
    """Parse JSON, raw control characters included; raises ValueError also for what nests too deep."""
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_jsonl(
    transcript: Transcript, reader: RecordReader, from_offset: int, state: Mapping[str, object] | None
) -> Iterator[Event]:
    """Drive a reader over the lines of a file from an offset.

    A line without its line feed is taken only when it is a complete object, which no later byte can change.
    """
    number = state.get("line") if state else None
    try:
        with transcript.open() as stream:
            first = number if isinstance(number, int) else 1
            for line in raw_lines(stream, from_offset, first):
                yield from _line_events(reader, line)
    except READ_ERRORS as error:
        yield Broken(0, f"cannot be read: {error}", "file", transcript.address)


def _line_events(reader: RecordReader, line: Line) -> Iterator[Event]:
    data = line.data
    if line.number == 1:
        data = data.removeprefix(_BOM)
    text, escaped = decode(data)
    after = line.number + (1 if line.terminated else 0)
    if line.too_long:
        yield Broken(line.number, f"line of more than {MAX_LINE} bytes")
    elif text.strip():
        try:
            value = parse(text)
        except ValueError as error:
            value = error
        if not line.terminated and not isinstance(value, dict):
            yield Pending(line.number, line.end - len(line.data), len(line.data))
            return
        yield from _value_events(reader, value, line, escaped)
    yield Checkpoint(line.end, {**reader.state(), "line": after})


def _value_events(reader: RecordReader, value: object, line: Line, escaped: bool) -> Iterator[Event]:
    if isinstance(value, ValueError):
        yield Broken(line.number, f"not JSON: {value}")
    elif not isinstance(value, dict):
        yield Broken(line.number, f"not a JSON object but {type(value).__name__}")
    else:
        try:
            yield from list(reader.record(value, line, escaped))
        except RecursionError:
            yield Broken(line.number, "nested too deeply")


def head_objects(head: bytes) -> list[Mapping[str, Any]]:
    """Parse the complete lines at the start of a file that are JSON objects; the rest is passed over."""
    found: list[Mapping[str, Any]] = []
    for data in head.removeprefix(_BOM).split(b"\n")[:200]:
        if data.lstrip()[:1] != b"{":
            continue
        try:
            value = parse(decode(data)[0])
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
