"""What conditions compare: fields of an environment, versions, and what is remembered of a value.

Everything here is a function of its arguments, and says why where it cannot say which.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from packaging.version import InvalidVersion, Version

Level = Literal["major", "minor", "patch"]
Order = Literal[-1, 0, 1]

LEVELS: tuple[Level, ...] = ("major", "minor", "patch")
MAX_KEYS = 200
"""Fields on the first level of an environment."""
MAX_VALUE_CHARS = 10_000
MAX_DEPTH = 3
"""How deep an environment may be nested: a field, a name in it, a property of that."""
MAX_REMEMBERED = 200
"""Characters of a value that are remembered as they are; of a longer one the hash is."""

_SEMVER = re.compile(r"[vV]?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_RANGE = re.compile(r"^\s*(?:\^|~=|~>|~|>=|<=|===|==|!=|=|>|<)|[*|,]|\s-\s|\.[xX]\b")
_PINNED = re.compile(r"^\s*(?:\^|~=|~>|~|>=|===|==|=)?\s*([vV]?\d[\w.+-]*)\s*$")
_SEPARATORS = re.compile(r"[-_.]+")
_LONGEST_VERSION = 100

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Seen:
    """What an environment says about a field.

    ``known`` is false where it says nothing about it: whether it is there is not known. ``gone`` is true
    where the thing that would hold it was looked at and does not have it.
    """

    known: bool
    gone: bool = False
    value: Any = None


UNKNOWN = Seen(False)
GONE = Seen(True, True)


def look_up(values: Mapping[str, Any], field: str, name: str | None = None) -> Seen:
    """Return what the values say about a dotted field, and about ``name`` inside it where one is given.

    Names may hold dots themselves (``package.json.react``), so that the longest that fits is taken first.
    ``react_version`` also means ``packages.react`` where there is no such field.
    """
    seen = _descend(values, field.split("."))
    if not seen.known and field.endswith("_version"):
        # Inside ``packages`` a name that is not there may belong to another project: that is not known.
        seen = _descend(values, ["packages", field.removesuffix("_version")])
        seen = UNKNOWN if seen.gone else seen
    if name is None or not seen.known or seen.gone:
        return seen
    inner = seen.value
    if isinstance(inner, Mapping):
        return _descend(inner, name.split("."), True)
    if isinstance(inner, Sequence) and not isinstance(inner, str):
        return Seen(True, value=name) if any(as_text(item) == name for item in inner) else GONE
    return Seen(True, value=name) if name in as_text(inner) else GONE


def _descend(values: Any, parts: Sequence[str], inside: bool = False) -> Seen:
    """Follow the parts; ``inside`` a thing that was looked at, what is not there is gone."""
    if not isinstance(values, Mapping):
        return GONE if inside else UNKNOWN
    best = GONE if inside else UNKNOWN
    for cut in range(len(parts), 0, -1):
        found = _named(values, ".".join(parts[:cut]))
        if found is _MISSING:
            continue
        if cut == len(parts):
            return Seen(True, value=found)
        seen = _descend(found, parts[cut:], True)
        if seen.known and not seen.gone:
            return seen
        best = seen
    return best


def _named(values: Mapping[str, Any], name: str) -> Any:
    """Return the value of a name; names of packages are known in lower case and with ``-`` for ``_``."""
    found = values.get(name, _MISSING)
    return values.get(package_name(name), _MISSING) if found is _MISSING else found


def package_name(name: str) -> str:
    """Return the one form of the name of a Python package: ``Foo_Bar`` is ``foo-bar``."""
    return _SEPARATORS.sub("-", name).lower()


def as_text(value: Any) -> str:
    """Write a value as text: JSON's names for what is not text, and no quotes around what is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def is_range(text: str) -> bool:
    """Say whether a text asks for a range of versions, as manifests do: ``^18.2``, ``>=3.11``."""
    return _RANGE.search(text) is not None


def read_version(value: Any) -> Version | tuple[Any, ...] | None:
    """Return the version that a value names, by PEP 440, else as a key of semantic versions; None for none.

    A leading ``v`` and build metadata do not count.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = as_text(value).strip()
    if not text or len(text) > _LONGEST_VERSION or not text.isascii():
        return None
    try:
        return Version(text)
    except (InvalidVersion, ValueError):
        return _semver(text)


def pinned_version(value: Any) -> Version | tuple[Any, ...] | None:
    """Return the version that a value names, or the one that a simple range of a manifest is built on."""
    plain = read_version(value)
    if plain is not None or not isinstance(value, str):
        return plain
    found = _PINNED.match(value[:_LONGEST_VERSION])
    return read_version(found[1]) if found else None


def _semver(text: str) -> tuple[Any, ...] | None:
    """Return a key that sorts as semantic versions do: a release after everything that precedes it."""
    found = _SEMVER.fullmatch(text)
    if found is None:
        return None
    numbers = tuple(int(part or 0) for part in found.groups()[:3])
    if found[4] is None:
        return (*numbers, 1, ())
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in found[4].split("."))
    return (*numbers, 0, parts)


def compare_versions(one: Any, other: Any) -> Order | None:
    """Return how two values compare as versions, None where they cannot be compared as such."""
    left, right = read_version(one), read_version(other)
    if left is None or right is None:
        return None
    if isinstance(left, Version) and isinstance(right, Version):
        return _order(_public(left), _public(right))
    keys = [_semver(as_text(value).strip()) for value in (one, other)]
    return _order(keys[0], keys[1]) if keys[0] is not None and keys[1] is not None else None


def _public(version: Version) -> Version:
    return Version(version.public)


def _order(left: Any, right: Any) -> Order:
    return -1 if left < right else 1 if left > right else 0


def release(version: Version | tuple[Any, ...], level: Level) -> tuple[int, ...]:
    """Return the numbers of a version down to a level: 18.2.1 is (18, 2) for ``minor``."""
    numbers = version.release if isinstance(version, Version) else version[:3]
    count = LEVELS.index(level) + 1
    return (*numbers, 0, 0, 0)[:count]


def compare(one: Any, other: Any) -> Order | str:
    """Return the order of two values, or why there is none.

    Numbers are compared as numbers, versions as versions, other text by its characters. A number against a
    text that both ways of reading put in different orders has none: JSON writes the version 1.10 as 1.1.
    """
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (one, other)]
    if all(numbers):
        return _order(one, other)
    if isinstance(one, bool | Mapping | list) or isinstance(other, bool | Mapping | list):
        return f"{_short(one)} and {_short(other)} have no order"
    versions = compare_versions(one, other)
    if any(numbers):
        return _mixed(one, other, versions)
    if versions is not None:
        return versions
    if one is None or other is None:
        return "nothing has no order"
    for value in (one, other):
        if is_range(value):
            return f"{_short(value)} is a range of versions, not one of them"
    if (read_version(one) is None) != (read_version(other) is None):
        return f"{_short(one)} and {_short(other)} are not both versions"
    return _order(one, other)


def _mixed(one: Any, other: Any, versions: Order | None) -> Order | str:
    try:
        plain: Order | None = _order(float(one), float(other))
    except (TypeError, ValueError, OverflowError):
        plain = None
    whole = isinstance(one, int) or isinstance(other, int)
    if versions is not None and (plain is None or plain == versions or whole):
        return versions
    return f"{_short(one)} and {_short(other)} are not clearly numbers or versions: write versions as text"


def same(one: Any, other: Any) -> bool:
    """Say whether two values are the same: as text, as numbers or as versions (18 is 18.0)."""
    if as_text(one) == as_text(other):
        return True
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return compare_versions(one, other) == 0


def remembered(seen: Seen) -> dict[str, Any] | None:
    """Return what is kept of a value, to be compared with later; None where it is not known."""
    if not seen.known:
        return None
    if seen.gone:
        return {"gone": True}
    text = as_text(seen.value)
    if len(text) <= MAX_REMEMBERED:
        return {"value": seen.value}
    return {"sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}


def unchanged(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Say whether two remembered values are of the same value."""
    return as_text(dict(before)) == as_text(dict(now))


def shown(kept: Mapping[str, Any]) -> str:
    """Write a remembered value for a reason."""
    if kept.get("gone"):
        return "not there"
    return (
        _short(kept["value"]) if "value" in kept else f"a value with SHA-256 {str(kept.get('sha256'))[:12]}"
    )


def _short(value: Any) -> str:
    text = " ".join(as_text(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
