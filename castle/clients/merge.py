"""Entries of a JSON settings file, added and taken away along a path of keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from castle.clients import edit
from castle.clients.jsonc import Item, Node, found, parse, where
from castle.errors import RefusedError

_BLANK = "{}"


@dataclass(frozen=True, slots=True)
class Json:
    """The text of one JSON file, ``source`` is its name in messages."""

    text: str
    source: Path
    relaxed: bool

    @property
    def root(self) -> Node:
        """The text, read; ConfigError where it is no JSON, RefusedError where it is no object."""
        node = parse(self.text, self.source, relaxed=self.relaxed)
        if node.kind != "object":
            raise RefusedError(
                f"{self.source}:{where(self.text, node.start)}: not an object; nothing was changed"
            )
        return node

    def changed(self, text: str) -> Json:
        """Return the file with another text."""
        return Json(text, self.source, self.relaxed)


def opened(text: str, source: Path, *, relaxed: bool) -> Json:
    """Return a file to be changed; one without a value in it counts as an empty object."""
    return Json(text if text.strip() else f"{_BLANK}\n", source, relaxed)


def with_value(file: Json, path: tuple[str, ...], value: object) -> Json:
    """Set the value at a path of keys; objects that are missing on the way are made."""
    root = file.root
    node = root
    for place, key in enumerate(path[:-1]):
        item = node.member(key)
        if item is None:
            for name in reversed(path[place + 1 :]):
                value = {name: value}
            return file.changed(edit.with_item(file.text, root, node, value, key))
        node = _expected(file, item.node, "object", path[: place + 1])
    item = node.member(path[-1])
    if item is None:
        return file.changed(edit.with_item(file.text, root, node, value, path[-1]))
    text = edit.rendered(value, None, edit.style(file.text, root), edit.indent_of(file.text, item.start))
    return file.changed(file.text[: item.node.start] + text + file.text[item.end :])


def with_element(file: Json, path: tuple[str, ...], value: object) -> Json:
    """Add an element to the list at a path of keys, which is made where it is missing."""
    root = file.root
    node = root
    for place, key in enumerate(path):
        item = node.member(key)
        if item is None:
            return with_value(file, path, [value])
        last = place == len(path) - 1
        node = _expected(file, item.node, "array" if last else "object", path[: place + 1])
    return file.changed(edit.with_item(file.text, root, node, value))


def _expected(file: Json, node: Node, kind: str, path: tuple[str, ...]) -> Node:
    if node.kind != kind:
        place = where(file.text, node.start)
        wanted = "an object" if kind == "object" else "a list"
        raise RefusedError(f"{file.source}:{place}: {'.'.join(path)} is not {wanted}; nothing was changed")
    return node


def without(file: Json, path: tuple[str, ...], item: Item, before: Json | None) -> Json:
    """Take an item out of the object or list at a path, then what is left empty around it.

    ``before`` is the file as it was without the item, where that is known: what was empty in it stays.
    """
    container = found(file.root, path)
    assert container is not None
    file = file.changed(edit.without_item(file.text, container, item))
    while True:
        container = found(file.root, path)
        assert container is not None
        if container.items:
            return file
        was = found(before.root, path) if before is not None else None
        inner = edit.inside(file.text, container)
        if was is not None and not was.items and before is not None:
            old = edit.inside(before.text, was)
            same = "".join(old.split()) == "".join(inner.split())
            return file.changed(edit.emptied(file.text, container, old)) if same else file
        if inner.strip():
            return file
        if not path or was is not None:
            return file.changed(edit.emptied(file.text, container, ""))
        outer = found(file.root, path[:-1])
        member = outer.member(path[-1]) if outer is not None else None
        assert outer is not None and member is not None
        file = file.changed(edit.without_item(file.text, outer, member))
        path = path[:-1]


def confirmed(before: Json, after: Json, own: Callable[[str, object], bool]) -> Json:
    """Return the changed file when it says of everything else what it said before, RefusedError otherwise.

    ``own`` tells from its key ("" in a list) and value whether a part is Castle's. What holds nothing but
    such parts is not compared.
    """
    if _bare(before.root.value(), own) != _bare(after.root.value(), own):
        raise RefusedError(f"{before.source}: cannot be changed safely as it is written; do it by hand")
    return after


def _bare(value: object, own: Callable[[str, object], bool]) -> object:
    """Return a value without Castle's parts and without what is empty, None for nothing at all."""
    if isinstance(value, dict):
        parts = {key: _bare(part, own) for key, part in value.items() if not own(key, part)}
        return {key: part for key, part in parts.items() if part is not None} or None
    if isinstance(value, list):
        return [_bare(part, own) for part in value if not own("", part)] or None
    return value
