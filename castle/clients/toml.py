"""A table of a TOML file, added and taken away without touching the rest of the text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.clients.jsonc import where
from castle.errors import ConfigError, RefusedError

_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")
_STRINGS = ('"""', "'''", '"', "'")
_LINE_END = re.compile(r"\r?\n")


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or a key with its value: ``text[start:end]``. ``header`` is the path of a table, or None."""

    start: int
    end: int
    header: tuple[str, ...] | None


def parse(text: str, source: Path) -> dict[str, Any]:
    """Read a whole text; raises ConfigError with line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.match(str(error))
        what = match[1] if match else str(error)
        place = f"{match[2]}:{match[3]}" if match and match[2] else where(text, len(text))
        raise ConfigError(f"{source}:{place}: {what}; nothing was changed") from None


def rendered(path: Sequence[str], values: Mapping[str, object], newline: str = "\n") -> str:
    """Write a table, its last line without an end. Values are strings and lists of them."""
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
    return newline.join(lines)


def _value(value: object) -> str:
    # What JSON escapes in strings is escaped the same way in TOML, which forbids DEL, too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def with_table(text: str, path: Sequence[str], values: Mapping[str, object], source: Path) -> str:
    """Add a table at the end. A text without a line end there does not get one."""
    first = _LINE_END.search(text)
    newline = first.group() if first else "\n"
    table = rendered(path, values, newline)
    ended = not text or text.endswith("\n")
    between = "" if not text else newline if ended else newline * 2
    added = f"{text}{between}{table}{newline if ended else ''}"
    try:
        read = tomllib.loads(added)
    except tomllib.TOMLDecodeError:
        read = {}
    if at(read, path) != values:
        raise RefusedError(
            f"{source}: {path[0]} is written in a way that no table can be added to; write it in by hand: "
            f"{path[-1]} = {{{', '.join(f'{key} = {_value(value)}' for key, value in values.items())}}}"
        )
    return added


def without_table(text: str, path: Sequence[str], source: Path) -> str:
    """Take a table away with the tables below it, and the line end that set it apart."""
    wanted = tuple(path)
    for start, end in reversed(list(_blocks(text, wanted))):
        end = _line_end(text, end)
        head = text[:start]
        lines = 1 if text[:end].endswith("\n") else 2
        for _ in range(lines):
            # Only an empty line goes; the end of the line before is needed.
            if lines == 2 or re.search(r"(?:^|\n)\r?\n\Z", head):
                head = re.sub(r"\r?\n\Z", "", head)
        text = head + text[end:]
    if at(parse(text, source), path) is not None:
        raise RefusedError(f"{source}: {'.'.join(path)} is not written as a table; take it out by hand")
    return text


def with_values(text: str, path: Sequence[str], values: Mapping[str, object], source: Path) -> str:
    """Give a table these values, None for a key that is to go; its other keys and the rest stay."""
    wanted = tuple(path)
    table: Statement | None = None
    cuts: list[tuple[int, int]] = []
    current: tuple[str, ...] | None = None
    for statement in statements(text):
        if statement.header is not None:
            current = statement.header
            table = statement if current == wanted else table
        elif current == wanted and _key(text[statement.start : statement.end]) in values:
            cuts.append((statement.start, _line_end(text, statement.end)))
    if table is None:
        raise RefusedError(f"{source}: {'.'.join(path)} is not written as a table; change it by hand")
    changed = text
    for start, end in reversed(cuts):
        changed = changed[:start] + changed[end:]
    first = _LINE_END.search(text)
    newline = first.group() if first else "\n"
    behind = _line_end(changed, table.end)
    head = changed[:behind] if changed[:behind].endswith("\n") else changed[:behind] + newline
    lines = [f"{key} = {_value(value)}{newline}" for key, value in values.items() if value is not None]
    changed = head + "".join(lines) + changed[behind:]
    return changed if text.endswith("\n") else re.sub(r"\r?\n\Z", "", changed)


def at(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return what stands at a path of keys, None when there is nothing."""
    found: Any = values
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _blocks(text: str, path: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield where the table and those below it begin and end."""
    opened: int | None = None
    end = 0
    for statement in statements(text):
        if statement.header is not None:
            if opened is not None:
                yield opened, end
            opened = statement.start if statement.header[: len(path)] == path else None
        end = statement.end
    if opened is not None:
        yield opened, end


def _line_end(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found + 1


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text that is valid TOML."""
    offset = 0
    while offset < len(text):
        char = text[offset]
        if char in " \t\r\n":
            offset += 1
        elif char == "#":
            offset = _line_end(text, offset)
        else:
            behind = _statement_end(text, offset)
            statement = text[offset:behind].rstrip()
            yield Statement(offset, offset + len(statement), _header(statement) if char == "[" else None)
            offset = behind


def _statement_end(text: str, offset: int) -> int:
    """Return where the statement ends: before a comment or line end outside of strings and brackets."""
    depth = 0
    while offset < len(text):
        char = text[offset]
        if char in "\"'":
            offset = _string_end(text, offset)
            continue
        if char in "#\n" and not depth:
            return offset
        if char == "#":
            offset = _line_end(text, offset)
            continue
        depth += (char in "[{") - (char in "]}")
        offset += 1
    return offset


def _string_end(text: str, offset: int) -> int:
    quote = next(quote for quote in _STRINGS if text.startswith(quote, offset))
    offset += len(quote)
    while not text.startswith(quote, offset):
        offset += 2 if text[offset] == "\\" and quote[0] == '"' else 1
    offset += len(quote)
    if len(quote) == 3:  # up to two more quotes belong to the string
        while text.startswith(quote[0], offset):
            offset += 1
    return offset


def _header(line: str) -> tuple[str, ...]:
    """Return the path that a header names."""
    value: Any = tomllib.loads(line)
    path: list[str] = []
    while value:
        if isinstance(value, list):
            value = value[0]
        else:
            ((key, value),) = value.items()
            path.append(key)
    return tuple(path)


def _key(statement: str) -> str:
    return next(iter(tomllib.loads(statement)))
