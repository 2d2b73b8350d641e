"""Reading JSON so that each part of it is known by its place in the text.

Comments and trailing commas are read where the caller allows them. Nothing is ever written from what was
read: ``castle.clients.edit`` changes the text itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from castle.errors import ConfigError

Kind = Literal["object", "array", "scalar"]

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_LITERAL = re.compile(r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_DEEPEST = 200


class NotJson(Exception):
    """The text is no JSON; ``offset`` is where that shows."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what


@dataclass(frozen=True, slots=True)
class Node:
    """A value: ``text[start:end]``. Objects and arrays have items, a scalar has its value."""

    kind: Kind
    start: int
    end: int
    items: tuple[Item, ...] = ()
    scalar: object = None

    def member(self, key: str) -> Item | None:
        """Return the item that counts for a key of an object: with JSON it is the last one of that name."""
        found = [item for item in self.items if item.key == key] if self.kind == "object" else []
        return found[-1] if found else None

    def value(self) -> object:
        """Return what the node stands for in Python."""
        if self.kind == "object":
            return {item.key: item.node.value() for item in self.items}
        if self.kind == "array":
            return [item.node.value() for item in self.items]
        return self.scalar


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object or an element of an array, from its key to the end of its value.

    ``comma`` is the offset of the comma behind it, None when there is none.
    """

    start: int
    node: Node
    key: str | None = None
    comma: int | None = None

    @property
    def end(self) -> int:
        """Where the item ends, its comma not counted."""
        return self.node.end

    @property
    def close(self) -> int:
        """Where the item ends, its comma included."""
        return self.node.end if self.comma is None else self.comma + 1


def parse(text: str, source: object, *, relaxed: bool) -> Node:
    """Read a whole text; ``relaxed`` allows comments and trailing commas.

    Raises ConfigError with the line and column of the first mistake.
    """
    try:
        return _Reader(text, relaxed).document()
    except NotJson as error:
        raise ConfigError(
            f"{source}:{where(text, error.offset)}: {error.what}; nothing was changed"
        ) from None


def where(text: str, offset: int) -> str:
    """Return line and column of an offset, both counted from 1."""
    line = text.count("\n", 0, offset) + 1
    return f"{line}:{offset - (text.rfind(chr(10), 0, offset) + 1) + 1}"


def comments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the comments of a stretch that holds nothing but those and space."""
    offset = start
    while (offset := _after_space(text, offset)) < end:
        match = _COMMENT.match(text, offset)
        if match is None:
            return
        yield offset, match.end()
        offset = match.end()


class _Reader:
    def __init__(self, text: str, relaxed: bool) -> None:
        self._text = text
        self._relaxed = relaxed

    def document(self) -> Node:
        node = self._value(self._skip(0), 0)
        end = self._skip(node.end)
        if end < len(self._text):
            raise NotJson(end, "there is more behind the end of the JSON value")
        return node

    def _skip(self, offset: int) -> int:
        """Return the offset of the next character that is neither space nor comment."""
        offset = _after_space(self._text, offset)
        while self._text.startswith(("//", "/*"), offset):
            if not self._relaxed:
                raise NotJson(offset, "JSON has no comments")
            match = _COMMENT.match(self._text, offset)
            if match is None:
                raise NotJson(offset, "the comment is not closed")
            offset = _after_space(self._text, match.end())
        return offset

    def _value(self, offset: int, depth: int) -> Node:
        char = self._text[offset : offset + 1]
        if depth > _DEEPEST:
            raise NotJson(offset, f"nested more than {_DEEPEST} deep")
        if char == "{":
            return self._container("object", offset, "}", depth)
        if char == "[":
            return self._container("array", offset, "]", depth)
        match = (_STRING if char == '"' else _LITERAL).match(self._text, offset)
        if match is None:
            raise NotJson(offset, "a JSON value is expected here" if char else "the text ends too early")
        return Node("scalar", offset, match.end(), scalar=json.loads(match.group()))

    def _container(self, kind: Kind, start: int, closing: str, depth: int) -> Node:
        items: list[Item] = []
        offset = self._skip(start + 1)
        while not self._text.startswith(closing, offset):
            if items and items[-1].comma is None:
                raise NotJson(offset, f"a comma or {closing} is expected here")
            item = self._item(kind, offset, depth)
            offset = self._skip(item.end)
            if self._text.startswith(",", offset):
                item = Item(item.start, item.node, item.key, offset)
                offset = self._skip(offset + 1)
                if self._text.startswith(closing, offset) and not self._relaxed:
                    raise NotJson(item.comma or offset, f"JSON has no comma before {closing}")
            items.append(item)
        return Node(kind, start, offset + 1, tuple(items))

    def _item(self, kind: Kind, offset: int, depth: int) -> Item:
        if kind == "array":
            return Item(offset, self._value(offset, depth + 1))
        match = _STRING.match(self._text, offset)
        if match is None:
            ended = offset >= len(self._text)
            raise NotJson(offset, "the text ends too early" if ended else "a key in quotes is expected here")
        colon = self._skip(match.end())
        if not self._text.startswith(":", colon):
            raise NotJson(colon, "a colon is expected here")
        return Item(offset, self._value(self._skip(colon + 1), depth + 1), json.loads(match.group()))


def _after_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def found(node: Node, path: tuple[str, ...]) -> Node | None:
    """Return the node at a path of keys, None when there is none."""
    for key in path:
        item = node.member(key)
        if item is None:
            return None
        node = item.node
    return node


def mapping(node: Node | None) -> Mapping[str, object]:
    """Return an object's value, an empty one for anything else."""
    value = node.value() if node is not None and node.kind == "object" else {}
    assert isinstance(value, dict)
    return value
