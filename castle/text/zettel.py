"""The zettel form of AAAK: notes on one file, how its mood went, and which notes belong together.

``parse(write(document)) == document`` for every document without empty entries in its lists: a sign that
has a meaning is written with a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from castle.errors import UsageError

_SPECIAL = re.compile(r'[\\|+_":>\n]')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_RESERVED = ("T", "ARC")


@dataclass(frozen=True, slots=True)
class Zettel:
    """One note; ``weight`` says how much it matters, from 0 to 1."""

    id: str
    entities: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    quote: str = ""
    weight: float = 0.0
    emotions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """Two notes that belong together."""

    first: str
    second: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """Notes on one file."""

    number: str
    entities: tuple[str, ...] = ()
    date: str = ""
    title: str = ""
    arc: tuple[str, ...] = ()
    zettels: tuple[Zettel, ...] = ()
    links: tuple[Link, ...] = ()


def write(document: Document) -> str:
    """Write a document, its head in the first line."""
    lines = [
        _fields(document.number, _join("+", document.entities), document.date, document.title, at=(0, 2, 3))
    ]
    if document.arc:
        lines.append("ARC:" + _join("->", document.arc))
    for zettel in document.zettels:
        id_ = ("\\" if zettel.id in _RESERVED else "") + _escape(zettel.id)
        fields = (
            _join("+", zettel.entities),
            _join("_", zettel.topics),
            f'"{_escape(zettel.quote)}"',
            repr(zettel.weight),
            _join("+", zettel.emotions),
            _join("+", zettel.flags),
        )
        lines.append(f"{id_}:{'|'.join(fields)}")
    for link in document.links:
        lines.append(f"T:{_escape(link.first)}<->{_escape(link.second)}|{_escape(link.label)}")
    return "\n".join(lines)


def parse(text: str) -> Document:
    """Read a document; raises UsageError naming the line that is none."""
    head, *lines = text.split("\n")
    parts = _split(head, "|")
    if len(parts) != 4:
        raise UsageError(f"line 1 is no head of an AAAK file (NUMBER|ENTITIES|DATE|TITLE): {head[:60]!r}")
    arc: tuple[str, ...] = ()
    zettels: list[Zettel] = []
    links: list[Link] = []
    for number, line in enumerate(lines, start=2):
        if line.startswith("ARC:"):
            arc = _list(line.removeprefix("ARC:"), "->")
        elif line.startswith("T:"):
            links.append(_link(line, number))
        elif line:
            zettels.append(_zettel(line, number))
    file_number, entities, date, title = parts
    return Document(
        _unescape(file_number),
        _list(entities, "+"),
        _unescape(date),
        _unescape(title),
        arc,
        tuple(zettels),
        tuple(links),
    )


def _zettel(line: str, number: int) -> Zettel:
    id_, _, rest = _partition(line, ":")
    parts = _split(rest, "|")
    if len(parts) != 6:
        raise UsageError(f"line {number} is no AAAK note, which has six fields: {line[:60]!r}")
    entities, topics, quote, weight, emotions, flags = parts
    try:
        value = float(weight)
    except ValueError:
        raise UsageError(f"line {number}: the weight {weight!r} is no number") from None
    return Zettel(
        _unescape(id_),
        _list(entities, "+"),
        _list(topics, "_"),
        _unescape(quote[1:-1] if len(quote) > 1 and quote[0] == quote[-1] == '"' else quote),
        value,
        _list(emotions, "+"),
        _list(flags, "+"),
    )


def _link(line: str, number: int) -> Link:
    ends, _, label = _partition(line.removeprefix("T:"), "|")
    first, arrow, second = _partition(ends, "<->")
    if not arrow:
        raise UsageError(f"line {number} is no AAAK link (T:ID<->ID|label): {line[:60]!r}")
    return Link(_unescape(first), _unescape(second), _unescape(label))


def _fields(*parts: str, at: tuple[int, ...]) -> str:
    """Join the fields of a line, escaping those at these places."""
    return "|".join(_escape(part) if place in at else part for place, part in enumerate(parts))


def _join(separator: str, items: Iterable[str]) -> str:
    return separator.join(_escape(item) for item in items if item)


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: "\\n" if found.group() == "\n" else "\\" + found.group(), text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found.group(1) == "n" else found.group(1), text)


def _split(text: str, separator: str) -> list[str]:
    """Cut at every separator that has no backslash before it."""
    parts: list[str] = []
    while True:
        part, found, text = _partition(text, separator)
        parts.append(part)
        if not found:
            return parts


def _partition(text: str, separator: str) -> tuple[str, str, str]:
    place = 0
    while place < len(text):
        if text[place] == "\\":
            place += 2
        elif text.startswith(separator, place):
            return text[:place], separator, text[place + len(separator) :]
        else:
            place += 1
    return text, "", ""


def _list(text: str, separator: str) -> tuple[str, ...]:
    return tuple(_unescape(part) for part in _split(text, separator) if part)
