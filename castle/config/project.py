"""The file of a project: its wing, its rooms, what to leave out, and whether it is captured at all.

A project's file comes with the project, often from strangers. It may therefore say where the project's own
text goes and what of it is left out, and nothing that concerns anything else.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.config.files import create, present
from castle.config.load import FILE_NAME, PROJECT_KEYS
from castle.config.settings import keys
from castle.config.values import plain_scalar, show, unknown_key
from castle.errors import ConfigError, RefusedError

_NAME = re.compile(r"[^\W_]([\w .'-]*[^\W_])?")
_ROOM_KEYS = ("name", "description", "keywords")
_REASON = (
    "a project's file may set only wing, rooms, ignore and capture, so that a cloned repository cannot "
    "redirect the palace, the models or the rules"
)


@dataclass(frozen=True, slots=True)
class Room:
    """A room of a project's wing; ``keywords`` are words that point a file to it."""

    name: str
    description: str = ""
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """What a project's ``castle.yaml`` says.

    ``wing`` None means that it follows from the directory. ``ignore`` holds patterns in the syntax of
    .gitignore, relative to the project. ``capture`` False keeps the project out of every automatic capture.
    """

    wing: str | None = None
    rooms: tuple[Room, ...] = ()
    ignore: tuple[str, ...] = ()
    capture: bool = True


def check_name(kind: str, name: str) -> str:
    """Return the name of a wing or room; raises ConfigError when it cannot be one.

    1 to 128 characters, letters or digits at both ends, between them also spaces and ``_ . ' -``, but not two
    dots in a row. A combining mark counts as a letter, except at the start: Hindi and Thai cannot be written
    without.
    """
    if len(name) <= 128 and _NAME.fullmatch(name[:1] + _without_marks(name[1:])) and ".." not in name:
        return name
    raise ConfigError(
        f"{kind} {show(name)}: a name has 1 to 128 characters, begins and ends with a letter or digit, and "
        "holds only letters, digits, spaces and _ . ' - between"
    )


def _without_marks(text: str) -> str:
    """Put a letter in the place of every combining mark."""
    if text.isascii():
        return text
    return "".join("a" if unicodedata.category(char)[0] == "M" else char for char in text)


def load_project(directory: Path) -> ProjectConfig | None:
    """Read the ``castle.yaml`` of a project; None only when there is none.

    Raises ConfigError with line and column for a file that is broken, sets anything else than a project may,
    or is a link that leaves the project.
    """
    path = directory / FILE_NAME
    if not present(path):
        return None
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory)):
        raise ConfigError(f"{path}: is a link to a file outside the project")
    from castle.config.yamlfile import parse, read_text

    text = read_text(path)
    return None if text is None else _read(parse(text, path))


def write_project(directory: Path, config: ProjectConfig) -> bool:
    """Write the ``castle.yaml`` of a project; False when one that says the same is there already.

    An existing file is never overwritten: one that says something else raises RefusedError, a broken one
    ConfigError.
    """
    path = directory / FILE_NAME
    text = render_project(config)
    from castle.config.yamlfile import parse

    if _read(parse(text, path)) != config:  # also refuses names that cannot be read back
        raise ConfigError(f"{path}: cannot express {show(str(config))}")
    if create(path, text.encode("utf-8"), 0o666):
        return True
    if load_project(directory) == config:
        return False
    raise RefusedError(f"{path} exists and says something else; it is left as it is, edit or move it away")


def render_project(config: ProjectConfig) -> str:
    """Return the text of a project's file; raises ConfigError for text that is not valid Unicode."""
    from yaml import SafeDumper, ScalarNode, dump

    class Dumper(SafeDumper):
        """Quotes what the reader would not take for the same text."""

        def represent_str(self, data: str) -> ScalarNode:
            style = '"' if plain_scalar(data) != data or data.endswith(",") else None
            return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

        def ignore_aliases(self, data: object) -> bool:
            return True

    Dumper.add_representer(str, Dumper.represent_str)
    data: dict[str, object] = {}
    if config.wing is not None:
        data["wing"] = config.wing
    if config.rooms:
        data["rooms"] = [_room_data(room) for room in config.rooms]
    if config.ignore:
        data["ignore"] = list(config.ignore)
    if not config.capture:
        data["capture"] = False
    body = dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100_000) if data else ""
    text = f"# Where Cognitive Castle files this project.\n{body}"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"{FILE_NAME}: a name or pattern is not valid Unicode") from None
    return text


def _room_data(room: Room) -> dict[str, object]:
    data: dict[str, object] = {"name": room.name}
    if room.description:
        data["description"] = room.description
    if room.keywords:
        data["keywords"] = list(room.keywords)
    return data


def _read(document: Any) -> ProjectConfig:
    """Check a document against what a project's file may hold."""
    _check_keys(document)
    from pydantic import ValidationError

    from castle.config.schema import ProjectFile

    try:
        file = ProjectFile.model_validate(_tuples(document.data), strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise ConfigError(f"{document.at(problem['loc'])}: {_explain(problem)}") from None
    if file.wing is not None:
        _named(document, ("wing",), "wing", file.wing)
    seen: set[str] = set()
    for index, room in enumerate(file.rooms):
        place = ("rooms", index, "name")
        _named(document, place, "room", room.name)
        if room.name in seen:
            raise ConfigError(f"{document.at(place)}: the room {show(room.name)} is listed twice")
        seen.add(room.name)
    rooms = tuple(Room(room.name, room.description, room.keywords) for room in file.rooms)
    return ProjectConfig(file.wing, rooms, file.ignore, file.capture)


def _check_keys(document: Any) -> None:
    known = {name.partition(".")[0] for name in keys()}
    for name in document.data:
        if name in known:
            raise ConfigError(f"{document.at((name,))}: {name} belongs in ~/.castle/castle.yaml: {_REASON}")
        if name not in PROJECT_KEYS:
            raise ConfigError(f"{document.at((name,))}: {unknown_key(name, PROJECT_KEYS)}; {_REASON}")


def _named(document: Any, place: tuple[str | int, ...], kind: str, name: str) -> None:
    try:
        check_name(kind, name)
    except ConfigError as error:
        raise ConfigError(f"{document.at(place)}: {error}") from None


def _tuples(value: object) -> object:
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, Mapping):
        return {name: _tuples(item) for name, item in value.items()}
    return value


_EXPECTED = {
    "string_type": "text",
    "tuple_type": "a list",
    "bool_type": "true or false",
    "model_type": "a mapping with a name",
    "dict_type": "a mapping with a name",
    "string_too_short": "text",
}


def _explain(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    kind, value = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"{place}: {unknown_key(str(problem['loc'][-1]), _ROOM_KEYS)}"
    if kind == "missing":
        return f"{place} is missing"
    got = "nothing" if value is None else show(value)
    quotes = " (put it in quotes)" if kind == "string_type" and isinstance(value, bool | int | float) else ""
    return f"{place}: expected {_EXPECTED.get(kind, problem['msg'])}, got {got}{quotes}"
