"""Adding to a JSON text and taking away again, so that every other byte stays where it was.

``without_item`` undoes ``with_item`` exactly. Only an object or array that was empty before
cannot be told from one that was not there: the text from before, where there still is one, says which it was.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from castle.clients.jsonc import Item, Node, comments

_UNIT = "  "


@dataclass(frozen=True, slots=True)
class Style:
    """How a text is written: its line end and what one level is indented by."""

    newline: str
    unit: str


def style(text: str, root: Node) -> Style:
    """Return the style that a text is written in."""
    first = re.search(r"\r?\n", text)
    unit = indent_of(text, root.items[0].start) if root.items and first else ""
    return Style(first.group() if first else "\n", unit or _UNIT)


def indent_of(text: str, offset: int) -> str:
    """Return the space at the beginning of the line that an offset lies in."""
    line = text.rfind("\n", 0, offset) + 1
    match = re.match(r"[ \t]*", text[line:offset])
    return match.group() if match else ""


def with_item(text: str, root: Node, container: Node, value: object, key: str | None = None) -> str:
    """Add an item behind the last one of an object (with a key) or an array (without)."""
    look = style(text, root)
    if not container.items:
        return _into_empty(text, container, value, key, look)
    last = container.items[-1]
    offset = _behind_comments(text, last.close, container.end - 1)
    if "\n" in text[container.start : last.start] or "//" in text[last.close : offset]:
        indent = indent_of(text, last.start)
        item = look.newline + indent + rendered(value, key, look, indent)
    else:
        # The separators of the line tell whether its writer puts spaces between things.
        tight = not re.search(r"[:,]\s", text[container.start : container.end])
        item = ("" if tight else " ") + _on_one_line(value, key, tight)
    if last.comma is not None:
        return f"{text[:offset]}{item},{text[offset:]}"
    return f"{text[: last.end]},{text[last.end : offset]}{item}{text[offset:]}"


def _into_empty(text: str, container: Node, value: object, key: str | None, look: Style) -> str:
    close = container.end - 1
    offset = _behind_comments(text, container.start + 1, close)
    outer = indent_of(text, container.start)
    item = look.newline + outer + look.unit + rendered(value, key, look, outer + look.unit)
    end = "" if "\n" in text[offset:close] else look.newline + outer
    return f"{text[:offset]}{item}{end}{text[offset:]}"


def _behind_comments(text: str, offset: int, end: int) -> int:
    """Return the offset behind the comments that begin on the same line."""
    for start, stop in comments(text, offset, end):
        if "\n" in text[offset:start]:
            break
        offset = stop
    return offset


def rendered(value: object, key: str | None, look: Style, indent: str) -> str:
    """Write an item over several lines; the first one is not indented."""
    lines = json.dumps(value, indent=look.unit, ensure_ascii=False).split("\n")
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    return name + (look.newline + indent).join(lines)


def _on_one_line(value: object, key: str | None, tight: bool) -> str:
    separators = (",", ":") if tight else (", ", ": ")
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + separators[1]
    return name + json.dumps(value, separators=separators, ensure_ascii=False)


def without_item(text: str, container: Node, item: Item) -> str:
    """Take an item away, with the comma that it needed and the space before it."""
    place = container.items.index(item)
    before = container.items[place - 1] if place else None
    start = len(text[: item.start].rstrip(" \t\r\n"))
    rest = text[item.close :]
    led_in = before.close if before is not None else container.start + 1
    open_ended = any(text.startswith("//", at) for at, _ in list(comments(text, led_in, item.start))[-1:])
    if open_ended and not re.match(r"[ \t]*(?:\r?\n|$)", rest):
        start = item.start  # what follows on the same line must not become part of the comment before
    head = text[:start]
    if item.comma is None and before is not None and before.comma is not None:
        # It was the last one: the comma that led to it goes with it.
        head = text[: before.comma] + text[before.comma + 1 : start]
    return head + rest


def emptied(text: str, container: Node, inner: str) -> str:
    """Write what stands between the brackets of a container that holds no items."""
    return f"{text[: container.start + 1]}{inner}{text[container.end - 1 :]}"


def inside(text: str, container: Node) -> str:
    """Return what stands between the brackets."""
    return text[container.start + 1 : container.end - 1]
