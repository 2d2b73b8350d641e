"""Reading a YAML file strictly: bounded, one plain document, every value with its line and column.

The files of people are small and simple. What YAML offers beyond that (anchors, tags, several documents, the
old booleans ``yes`` and ``no``) is refused or read as text, because each of it has a way to surprise.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from yaml import MarkedYAMLError
from yaml.composer import Composer, ComposerError
from yaml.error import Mark
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import FlowEntryToken, FlowMappingEndToken, FlowSequenceEndToken, Token

from castle.config.files import present
from castle.config.values import plain_scalar, show
from castle.errors import ConfigError

MAX_BYTES = 1_000_000
"""The size of the largest file that is read."""

_MAX_DEPTH = 20
_BOM = "\ufeff"
_TAGS = {
    ScalarNode: BaseResolver.DEFAULT_SCALAR_TAG,
    SequenceNode: BaseResolver.DEFAULT_SEQUENCE_TAG,
    MappingNode: BaseResolver.DEFAULT_MAPPING_TAG,
}

Place = tuple[str | int, ...]
"""The keys and indexes that lead from the top of a file to a value."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says. ``places`` gives line and column, from 1, of every key and list item."""

    path: Path
    data: Mapping[str, object]
    places: Mapping[Place, tuple[int, int]]
    root: MappingNode | None

    def at(self, place: Place) -> str:
        """Return ``path:line:column`` of the value at a place, or of the nearest one around it."""
        while place and place not in self.places:
            place = place[:-1]
        line, column = self.places.get(place, (1, 1))
        return f"{self.path}:{line}:{column}"


def read_text(path: Path) -> str | None:
    """Read a file of settings; None only when there is no such file.

    A leading byte order mark is kept. Anything that is not a readable regular file of UTF-8 text raises
    ConfigError; nothing is ever opened in a way that could wait.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        if present(path):
            raise ConfigError(f"{path}: is a link to {path.readlink()}, which is not there") from error
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError(f"{path}: is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than the {MAX_BYTES} bytes that settings may have")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise ConfigError(f"{path}:{line}:{column}: is not UTF-8; save the file as UTF-8") from error


def parse(text: str, path: Path) -> Document:
    """Read a document whose top is a mapping, or that is empty; raises ConfigError with line and column."""
    node = _compose(text.removeprefix(_BOM), path)
    if node is None or (
        isinstance(node, ScalarNode) and node.style is None and plain_scalar(node.value) is None
    ):
        return Document(path, {}, {}, None)
    if not isinstance(node, MappingNode):
        raise ConfigError(f"{_at(path, node.start_mark)}: expected lines of the form key: value")
    places: dict[Place, tuple[int, int]] = {}
    data = _build(node, (), path, places)
    assert isinstance(data, dict)
    return Document(path, data, places, node)


def parse_value(text: str, name: str) -> object:
    """Read one value in YAML that was given as text for the key ``name``."""
    path = Path(f"<{name}>")
    node = _compose(text, path)
    return None if node is None else _build(node, (), path, {})


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """A YAML reader up to nodes, without aliases, trailing commas and deep nesting."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._depth = 0
        self._newest: Token | None = None

    def fetch_more_tokens(self) -> None:
        """Scan on; a comma right before a closing bracket is an error."""
        super().fetch_more_tokens()
        newest = self.tokens[-1]
        if isinstance(newest, FlowSequenceEndToken | FlowMappingEndToken) and isinstance(
            self._newest, FlowEntryToken
        ):
            raise ScannerError(None, None, "a comma with nothing after it", self._newest.start_mark)
        self._newest = newest

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Compose one node."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ComposerError(None, None, "anchors and aliases are not allowed here", event.start_mark)
        if self._depth >= _MAX_DEPTH:
            raise ComposerError(None, None, f"nested deeper than {_MAX_DEPTH} levels", event.start_mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def _compose(text: str, path: Path) -> Node | None:
    try:
        return _Loader(text).get_single_node()
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        character = f"U+{ord(text[error.position]):04X}"
        raise ConfigError(f"{path}:{line}:{column}: the character {character} is not allowed") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = _at(path, mark) if mark else str(path)
        raise ConfigError(f"{where}: {error.problem or 'is not YAML'}") from error


def _at(path: Path, mark: Mark) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}"


def _build(node: Node, place: Place, path: Path, places: dict[Place, tuple[int, int]]) -> object:
    """Turn nodes into values, noting where each one stands."""
    if node.tag not in {_TAGS[type(node)], "!"}:
        raise ConfigError(f"{_at(path, node.start_mark)}: the tag {show(node.tag)} is not allowed")
    if isinstance(node, ScalarNode):
        return _scalar(node, path)
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            places[*place, index] = (item.start_mark.line + 1, item.start_mark.column + 1)
        return [_build(item, (*place, index), path, places) for index, item in enumerate(node.value)]
    values: dict[str, object] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode) or not key_node.value:
            raise ConfigError(f"{_at(path, key_node.start_mark)}: a key must be one word")
        key = str(key_node.value)
        if key in values:
            first = places[*place, key][0]
            raise ConfigError(f"{_at(path, key_node.start_mark)}: {key} is already set in line {first}")
        places[*place, key] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        values[key] = _build(value_node, (*place, key), path, places)
    return values


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.style is None and plain_scalar(node.value) is None


def _scalar(node: ScalarNode, path: Path) -> object:
    text = str(node.value)
    if node.style is not None:
        return text
    if text.endswith(","):
        where = _at(path, node.start_mark)
        raise ConfigError(f"{where}: {show(text)} ends in a comma; remove it, or put the text in quotes")
    return plain_scalar(text)
