"""Bringing flags, environment, the user's file and the defaults together.

Precedence is flag, environment, user's file, default. A file or variable that is wrong raises ConfigError;
none is passed over in silence, and only a file that is not there counts as absent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.config.files import present
from castle.config.settings import Hooks, Key, Settings, find_key, keys
from castle.config.values import check, from_text, unknown_key
from castle.errors import ConfigError

FILE_NAME = "castle.yaml"
"""The name of the file of settings, a user's and a project's."""

PROJECT_KEYS = ("wing", "rooms", "ignore", "capture")
"""What a project's own file may set."""

_OTHER_ENVIRONMENT = frozenset(
    {
        "CASTLE_HOME",
        "CASTLE_CACHE_DIR",
        "CASTLE_THREADS",
        "CASTLE_PROJECT",
        "CASTLE_DIR",
        "CASTLE_PYTHON",
        "CASTLE_SOURCE_DIR",
        "CASTLE_SML_DISABLED",
    }
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where settings are looked for: ``user_home`` stands for ``~``, ``home`` is Castle's own directory."""

    user_home: Path
    home: Path

    @property
    def file(self) -> Path:
        """The user's file of settings."""
        return self.home / FILE_NAME

    def short(self, path: Path) -> str:
        """Write a path with ``~`` where it lies in the user's home."""
        if path.is_relative_to(self.user_home):
            return f"~/{path.relative_to(self.user_home)}"
        return str(path)


def surroundings(env: Mapping[str, str] = os.environ, home: Path | None = None) -> Surroundings:
    """Find the user's home and Castle's directory; ``home`` and CASTLE_HOME replace ``~/.castle``."""
    user_home = Path(env.get("HOME") or Path.home())
    if home is None:
        named = env.get("CASTLE_HOME") or "~/.castle"
        home = user_home / named[2:] if named.startswith("~/") else Path(named)
    return Surroundings(user_home, Path.cwd() / home)


def load(
    overrides: Mapping[str, object] | None = None,
    *,
    env: Mapping[str, str] = os.environ,
    home: Path | None = None,
) -> Settings:
    """Return the settings in force.

    ``overrides`` are the flags of a command by dotted key; a value of None means that the flag was not given.
    ``home`` is Castle's directory in the place of ``~/.castle``. Raises ConfigError.
    """
    around = surroundings(env, home)
    values: dict[str, object] = {"palace_path": around.home / "palace"}
    origins: dict[str, str] = {}
    layers = (user_values(around), _environment_values(env, around), _flag_values(overrides or {}, around))
    for layer in layers:
        for key, value, origin in layer:
            values[key.name] = value
            origins[key.name] = origin
    _check_together(values, origins)
    hooks = Hooks(**{n[6:]: v for n, v in values.items() if n.startswith("hooks.")})  # type: ignore[arg-type]
    flat: dict[str, Any] = {n: v for n, v in values.items() if not n.startswith("hooks.")}
    return Settings(**flat, hooks=hooks, home=around.home, origins=origins)


def user_values(around: Surroundings, text: str | None = None) -> Iterator[tuple[Key, object, str]]:
    """Read the user's file, or ``text`` in its place: key, checked value and origin."""
    if text is None:
        if not present(around.file):
            return
        from castle.config.yamlfile import read_text

        text = read_text(around.file)
    if text is None:
        return
    from castle.config.yamlfile import parse

    document = parse(text, around.file)
    origin = f"user {around.short(around.file)}"
    for name, value in _flatten(document.data, document.at):
        key = keys()[name]
        where = document.at(tuple(name.split(".")))
        yield key, check(key, value, where, around.file.parent, around.user_home), origin


def _flatten(data: Mapping[str, object], at: Any) -> Iterator[tuple[str, object]]:
    """Give nested groups their dotted names, and refuse what is not a key."""
    known = keys()
    groups = {name.partition(".")[0] for name in known if "." in name}
    for name, value in data.items():
        where = at((name,))
        if name in groups:
            if value is None:
                continue
            if not isinstance(value, Mapping):
                raise ConfigError(f"{where}: {name}: expected a mapping of its keys")
            inside = [key.partition(".")[2] for key in known if key.startswith(f"{name}.")]
            for inner, item in value.items():
                if inner not in inside:
                    raise ConfigError(f"{at((name, inner))}: {name}: {unknown_key(inner, inside)}")
                yield f"{name}.{inner}", item
        elif name in known and "." not in name:
            yield name, value
        elif name in PROJECT_KEYS:
            raise ConfigError(f"{where}: {name} belongs in the castle.yaml of a project, not in the user's")
        elif name in known:
            group, _, inner = name.partition(".")
            raise ConfigError(f"{where}: write {inner} indented under {group}:")
        else:
            raise ConfigError(f"{where}: {unknown_key(name, known)}")


def _environment_values(env: Mapping[str, str], around: Surroundings) -> Iterator[tuple[Key, object, str]]:
    for key in keys().values():
        for name in key.env:
            text = env.get(name)
            if text:
                where = f"environment {name}"
                value = check(key, from_text(key, text), where, Path.cwd(), around.user_home)
                yield key, value, where
                break


def _flag_values(overrides: Mapping[str, object], around: Surroundings) -> Iterator[tuple[Key, object, str]]:
    for name, given in overrides.items():
        if given is not None:
            key = find_key(name)
            value = from_text(key, given) if isinstance(given, str) else given
            yield key, check(key, value, "flag", Path.cwd(), around.user_home), "flag"


def _check_together(values: Mapping[str, object], origins: Mapping[str, str]) -> None:
    defaults = keys()
    low, high = "quality_threshold_medium", "quality_threshold_high"
    medium, top = (values.get(name, defaults[name].default) for name in (low, high))
    if isinstance(medium, float) and isinstance(top, float) and medium > top:
        where = origins.get(high) or origins[low]
        raise ConfigError(f"{where}: {low} ({medium:g}) must not be above {high} ({top:g})")


def hints(env: Mapping[str, str] = os.environ, home: Path | None = None) -> tuple[str, ...]:
    """Say what about the surroundings may surprise: files and variables that are not read, an open secret."""
    around = surroundings(env, home)
    found = []
    old = around.home / "config.json"
    if old.exists():
        found.append(f"{around.short(old)} is not read; its settings go into {around.short(around.file)}")
    names = {name for key in keys().values() for name in key.env}
    for name in sorted(env):
        if name.startswith("CASTLE_") and name not in names | _OTHER_ENVIRONMENT:
            found.append(f"environment: {unknown_key(name, names).replace('key', 'variable', 1)}")
    if any(key.secret for key, _, _ in user_values(around)) and _open_to_others(around.file):
        found.append(f"others can read the key in {around.short(around.file)}: chmod 600 {around.file}")
    return tuple(found)


def _open_to_others(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
