"""Changing one key in the user's file without touching the rest of it.

The file belongs to its user: comments, order and spacing stay. The change is made in the text, the result is
read again, and only when it says exactly what was wanted does it replace the file. Whatever cannot be done
that way is refused with the line to write by hand.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.config.files import exclusive, replace
from castle.config.load import Surroundings, surroundings, user_values
from castle.config.settings import Key, find_key
from castle.config.values import check, from_text, plain, to_yaml
from castle.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

    from castle.config.yamlfile import Document

LEAST_TOKEN = 16
"""Characters of a token that a server beyond this machine accepts."""

_BOM = "\ufeff"


def set_user(
    key: str, value: object, *, env: Mapping[str, str] = os.environ, home: Path | None = None
) -> Path:
    """Set a key in the user's file and return the file.

    Text is read as the key's type, a relative path counts from the current directory. The file gets mode
    0600, a directory that has to be made 0700. Raises ConfigError for a wrong key, value or file,
    RefusedError when the file is written in a way that the change cannot be made in safely.
    """
    around = surroundings(env, home)
    found = find_key(key)
    wanted = _for_file(found, value, around)
    try:
        around.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{around.home}: cannot be made: {error.strerror}") from error
    with exclusive(around.home):
        target = Path(os.path.realpath(around.file))
        text = _read(target)
        changed = _changed(text, found, wanted, around)
        replace(target, changed.encode("utf-8"), 0o600)
    return around.file


def unset_user(
    key: str, *, env: Mapping[str, str] = os.environ, home: Path | None = None
) -> tuple[Path, bool]:
    """Take a key out of the user's file; return the file, and whether the key was in it.

    The rest of the file stays; a comment on the line of the key goes with it. Raises ConfigError for a wrong
    key or file, RefusedError when the file is written in a way that it cannot be taken out of safely.
    """
    from castle.config.yamlfile import parse

    around = surroundings(env, home)
    found = find_key(key)
    if not around.home.is_dir():
        return around.file, False
    with exclusive(around.home):
        target = Path(os.path.realpath(around.file))
        text = _read(target)
        document = parse(text, around.file)
        path = found.name.split(".")
        if not _holds(document.data, path):
            return around.file, False
        mark = _BOM if text.startswith(_BOM) else ""
        edited = _cut(text.removeprefix(_BOM), document.root, path)
        wanted = _without(document.data, path)
        if edited is None or not _says(edited, wanted, around):
            raise RefusedError(f"{around.file} is laid out so that {found.name} cannot be taken out safely")
        list(user_values(around, mark + edited))
        replace(target, (mark + edited).encode("utf-8"), 0o600)
    return around.file, True


def _holds(data: Mapping[str, object], path: list[str]) -> bool:
    inner: object = data
    for name in path:
        if not isinstance(inner, Mapping) or name not in inner:
            return False
        inner = inner[name]
    return True


def _without(data: Mapping[str, object], path: list[str]) -> dict[str, object]:
    """Return the data without the key at a path, and without a group that held nothing else."""
    head, *rest = path
    others = {name: value for name, value in data.items() if name != head}
    group = data[head]
    left = _without(group, rest) if rest and isinstance(group, Mapping) else {}
    return {name: left if name == head else data[name] for name in data if name in others or left}


def _says(text: str, wanted: Mapping[str, object], around: Surroundings) -> bool:
    from castle.config.yamlfile import parse

    try:
        return parse(text, around.file).data == wanted
    except ConfigError:
        return False


def _cut(body: str, node: Any, path: list[str]) -> str | None:
    """Take a key out of the text; None when the layout is not one that is understood."""
    pair = _find(node, path[0])
    if pair is None:
        return None
    name, value = pair
    if len(path) > 1 and len(value.value) > 1:
        return _cut(body, value, path[1:])
    if node.flow_style:
        left = [one for one in node.value if one is not pair]
        shown = ", ".join(body[one[0].start_mark.index : one[1].end_mark.index] for one in left)
        return f"{body[: node.start_mark.index]}{{{shown}}}{body[node.end_mark.index :]}"
    start = name.start_mark.index - name.start_mark.column
    if body[start : name.start_mark.index].strip():
        return None
    end = _end(value)
    line = body.find("\n", end - 1) if end else -1
    return body[:start] + (body[line + 1 :] if line >= 0 else "")


def _end(node: Any) -> int:
    """Return where a value ends: a block ends with the last thing in it, not before the next key."""
    if getattr(node, "flow_style", None) is False and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _read(target: Path) -> str:
    from castle.config.yamlfile import read_text

    return read_text(target) or ""


def _for_file(key: Key, value: object, around: Surroundings) -> object:
    """Check a value and bring it into the form in which it is written."""
    typed = from_text(key, value) if isinstance(value, str) else value
    if key.name == "serve_token" and isinstance(typed, str) and len(typed) < LEAST_TOKEN:
        raise ConfigError(f"argument: {key.name}: a token of at least {LEAST_TOKEN} characters is needed")
    checked = check(key, typed, "argument", Path.cwd(), around.user_home)
    if isinstance(checked, Path) and str(typed).startswith("~/"):
        checked = str(typed)
    try:
        str(checked).encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"argument: {key.name}: the value is not valid Unicode") from None
    return plain(checked)


def _changed(text: str, key: Key, value: object, around: Surroundings) -> str:
    """Return the text with the key set, or raise RefusedError."""
    from castle.config.yamlfile import parse

    document = parse(text, around.file)
    mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    edited = _edit(body, document, key.name.split("."), value)
    if edited is not None:
        try:
            after = parse(edited, around.file).data
        except ConfigError:
            after = {}
        if after == _with(document.data, key.name.split("."), value):
            list(user_values(around, mark + edited))  # everything else in the file must be right, too
            return mark + edited
    group, _, name = key.name.rpartition(".")
    line = f"{group}: {{{name}: {to_yaml(value)}}}" if group else f"{name}: {to_yaml(value)}"
    shown = f"{key.name} there" if key.secret else f"there: {line}"
    raise RefusedError(f"{around.file} is laid out so that it cannot be changed safely; write {shown}")


def _with(data: Mapping[str, object], path: list[str], value: object) -> dict[str, object]:
    """Return the data with the value at a path of one or two keys."""
    head, *rest = path
    inner = data.get(head)
    return {**data, head: _with(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value}


def _edit(body: str, document: Document, path: list[str], value: object) -> str | None:
    """Change the text; None when the layout is not one that is understood."""
    end = "\r\n" if "\r\n" in body else "\n"
    root = document.root
    if root is None:
        return _append(body, path, value, "", end)
    head, *rest = path
    pair = _find(root, head)
    if pair is None:
        if root.flow_style:
            return None
        return _append(body, path, value, " " * root.start_mark.column, end)
    node = pair[1]
    if not rest:
        return _put(body, node, to_yaml(value))
    inner = _find(node, rest[0]) if hasattr(node, "flow_style") else None
    if inner is not None:
        return _put(body, inner[1], to_yaml(value))
    if getattr(node, "flow_style", None) is False:
        return _insert(body, node, f"{rest[0]}: {to_yaml(value)}{end}")
    group = document.data[head]
    return _put(body, node, to_yaml(_with(group if isinstance(group, Mapping) else {}, rest, value)))


def _find(node: Any, name: str) -> tuple[Node, Node] | None:
    return next((pair for pair in node.value if pair[0].value == name), None)


def _append(body: str, path: list[str], value: object, indent: str, end: str) -> str:
    before = body if not body or body.endswith("\n") else body + end
    *groups, name = path
    lines = [f"{indent}{group}:" for group in groups]
    lines.append(f"{indent}{'  ' * len(groups)}{name}: {to_yaml(value)}")
    return before + "".join(line + end for line in lines)


def _put(body: str, node: Node, new: str) -> str | None:
    """Replace a value that stands on one line and has no block layout."""
    start, stop = node.start_mark, node.end_mark
    if start.line != stop.line or getattr(node, "flow_style", None) is False:
        return None
    gap = " " if start.index == stop.index and not body[: start.index].endswith(" ") else ""
    return body[: start.index] + gap + new + body[stop.index :]


def _insert(body: str, node: MappingNode | Node, line: str) -> str:
    """Put a line before the first one of a block mapping."""
    at = node.start_mark.index - node.start_mark.column
    return body[:at] + " " * node.start_mark.column + line + body[at:]
