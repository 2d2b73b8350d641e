"""One value of a setting: from text, checked, and written back as YAML."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from castle.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from castle.config.settings import Key

MASK = "********"
"""What is shown in the place of a secret."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_PLAIN = re.compile(r"[A-Za-z0-9_./~][A-Za-z0-9_./~+-]*(:[A-Za-z0-9_./~+-]+)*")


def plain_scalar(text: str) -> object:
    """Read an unquoted YAML scalar by the core schema of YAML 1.2: null, booleans, decimal numbers, text."""
    if text in {"", "~", "null", "Null", "NULL"}:
        return None
    if text in {"true", "True", "TRUE"}:
        return True
    if text in {"false", "False", "FALSE"}:
        return False
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def from_text(key: Key, text: str) -> object:
    """Turn the text of an environment variable or argument into the type of its key.

    Text that does not fit is returned as it is, so that ``check`` can refuse it by name. Lists are separated
    by commas; a mapping, or a list in brackets, is read as YAML.
    """
    kind = key.kind
    stripped = text.strip()
    if key.optional and stripped in {"", "null"}:
        return None
    if kind is int:
        return int(stripped) if _INT.fullmatch(stripped) else text
    if kind is float:
        return float(stripped) if _NUMBER.fullmatch(stripped) else text
    if kind is bool:
        lower = stripped.lower()
        return True if lower in _TRUE else False if lower in _FALSE else text
    if kind is Mapping or (kind is tuple and stripped.startswith("[")):
        from castle.config.yamlfile import parse_value

        return parse_value(text, key.name)
    if kind is tuple:
        return [part.strip() for part in stripped.split(",") if part.strip()]
    return text


def check(key: Key, value: object, where: str, base: Path, user_home: Path) -> object:
    """Return the value in the key's own type, frozen.

    Raises ConfigError that names place, key, value and what is expected.
    Relative paths count from ``base``, ``~`` is ``user_home``.
    """
    try:
        ready = _shape(key, value, base, user_home)
    except _NoPathError:
        raise _not_expected(key, value, where) from None
    if _plainly_right(key, ready):
        return ready
    from pydantic import ValidationError

    try:
        checked: object = _adapter(key).validate_python(ready, strict=True)
    except ValidationError:
        raise _not_expected(key, value, where) from None
    if isinstance(checked, Mapping):
        return MappingProxyType(dict(checked))
    return checked


def _not_expected(key: Key, value: object, where: str) -> ConfigError:
    return ConfigError(f"{where}: {key.name}: expected {key.expected}, got {_shown(key, value)}")


def _plainly_right(key: Key, value: object) -> bool:
    """Whether a value needs no closer look: importing pydantic takes longer than a whole answer may."""
    if value is None:
        return key.optional
    if key.choices:
        return value in key.choices
    if type(value) is str:
        return key.kind is str and value != "" and value.isascii() and key.pattern is None
    if type(value) is bool or isinstance(value, Path):
        return key.kind is bool if type(value) is bool else key.kind is Path
    if type(value) is not key.kind or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    low, above, high = key.ge, key.gt, key.le
    return (
        (low is None or value >= low) and (above is None or value > above) and (high is None or value <= high)
    )


class _NoPathError(ValueError):
    """The text does not name a path."""


def _shape(key: Key, value: object, base: Path, user_home: Path) -> object:
    """Bring what YAML can say into the shape the strict check takes: tuples for lists, Path for paths."""
    if key.kind is Path and isinstance(value, str | Path):
        return resolve_path(str(value), base, user_home)
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, Mapping):
        return {name: tuple(item) if isinstance(item, list) else item for name, item in value.items()}
    return value


def resolve_path(text: str, base: Path, user_home: Path) -> Path:
    """Expand ``~`` and make the path absolute from ``base``."""
    if not text.strip() or "\0" in text:
        raise _NoPathError(text)
    if text == "~" or text.startswith("~/"):
        return user_home / text[2:]
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:  # ~name, and there is no such user
        raise _NoPathError(text) from error
    return base / path


@cache
def _adapter(key: Key) -> TypeAdapter[Any]:
    from typing import Annotated

    from pydantic import Field, TypeAdapter

    bounds: dict[str, Any] = {n: v for n in ("ge", "gt", "le") if (v := getattr(key, n)) is not None}
    if key.kind is float:
        bounds["allow_inf_nan"] = False
    if key.kind is str:
        bounds["min_length"] = 1
        if key.pattern:
            bounds["pattern"] = key.pattern
    target: Any = Annotated[key.type, Field(**bounds)] if bounds else key.type
    return TypeAdapter(target)


def _shown(key: Key, value: object) -> str:
    if value is None:
        return "nothing"
    if key.secret:
        return "a hidden value"
    text = show(value)
    if key.kind in {str, tuple} and isinstance(value, bool | int | float):
        return f"{text} (put it in quotes)"
    if isinstance(value, Mapping) and key.kind is not Mapping:
        return "a mapping"
    if isinstance(value, list | tuple) and key.kind is not tuple:
        return "a list"
    return text


def show(value: object, limit: int = 60) -> str:
    """Write a value in one short line for a message."""
    text = json.dumps(plain(value), ensure_ascii=False, default=str)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 3] + "..."


def plain(value: object) -> Any:
    """Return the value in terms of JSON: lists, dictionaries, text, numbers, booleans and None."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def to_yaml(value: object) -> str:
    """Write a value as one line of YAML; text is quoted where YAML would read it otherwise."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{to_yaml(str(name))}: {to_yaml(item)}" for name, item in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(to_yaml(item) for item in value)}]"
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str) and _PLAIN.fullmatch(value) and plain_scalar(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def unknown_key(name: str, known: Iterable[str]) -> str:
    """Say that a key is unknown, with the nearest right one where one is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    hint = f", did you mean {near[0]}?" if near else ""
    return f"unknown key {show(name)}{hint}"
