"""Environments as values: read from JSON, kept as snapshots, compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from castle.errors import UsageError
from castle.mind.conditions.rules import Environment, FileState
from castle.mind.conditions.values import MAX_DEPTH, MAX_KEYS, MAX_VALUE_CHARS, as_text
from castle.text.served import mask_secrets

MAX_ENTRIES = 20_000
"""Names in one field; a lock file with more is known by its hash alone."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How one environment differs from the one before, by fields."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.changed or self.added or self.removed)

    def shown(self) -> dict[str, Any]:
        """Return them as answers hold them."""
        return {
            "changed_fields": list(self.changed),
            "added_fields": list(self.added),
            "removed_fields": list(self.removed),
            "has_changes": self.any,
        }


def changes(before: Environment | None, now: Environment) -> Changes:
    """Return the fields and files that differ; without one before, all of them are added."""
    old, new = _fields(before), _fields(now)
    return Changes(
        tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
    )


def _fields(environment: Environment | None) -> dict[str, str]:
    if environment is None:
        return {}
    files = {f"file:{path}": state.sha256 for path, state in environment.files.items() if not state.problem}
    return {name: as_text(value) for name, value in environment.values.items()} | files


def merged(before: Environment | None, now: Environment) -> Environment:
    """Return what is so now, and for fields that it says nothing about, what was so before."""
    if before is None:
        return now
    return Environment({**before.values, **now.values}, {**before.files, **now.files}, now.notes)


def without_secrets(environment: Environment, salt: bytes) -> Environment:
    """Mask every secret in the values: a manifest may name a package by a URL with a password in it."""
    return Environment(_masked(environment.values, salt), environment.files, environment.notes)


def _masked(value: Any, salt: bytes) -> Any:
    if isinstance(value, str):
        return mask_secrets(value, salt)
    if isinstance(value, Mapping):
        return {mask_secrets(name, salt): _masked(inner, salt) for name, inner in value.items()}
    return [_masked(inner, salt) for inner in value] if isinstance(value, list | tuple) else value


def read_environment(given: object) -> Environment:
    """Return the environment that a JSON object describes; raises UsageError, one line that says what.

    It has ``MAX_KEYS`` fields at most, is nested ``MAX_DEPTH`` deep, and each text in it has
    ``MAX_VALUE_CHARS`` characters at most.
    """
    if not isinstance(given, Mapping) or not given:
        raise UsageError('the environment is not an object with fields, such as {"node_version": "20.11.0"}')
    if len(given) > MAX_KEYS:
        raise UsageError(f"the environment has {len(given):,} fields: {MAX_KEYS} at most")
    return Environment({name: _checked(name, value, 1) for name, value in given.items()})


def _checked(name: object, value: Any, depth: int) -> Any:
    if not isinstance(name, str) or len(name) > MAX_VALUE_CHARS:
        raise UsageError("a name in the environment is not a text, or too long")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        if len(value) > MAX_VALUE_CHARS:
            raise UsageError(f"{name[:60]!r} has {len(value):,} characters: {MAX_VALUE_CHARS:,} at most")
        return value
    if depth >= MAX_DEPTH or not isinstance(value, Mapping | list | tuple):
        what = "nested too deep" if isinstance(value, Mapping | list | tuple) else "nothing that JSON has"
        raise UsageError(f"{name[:60]!r} is {what}: an environment is nested {MAX_DEPTH} deep at most")
    if len(value) > MAX_ENTRIES:
        raise UsageError(f"{name[:60]!r} has {len(value):,} entries: {MAX_ENTRIES:,} at most")
    if isinstance(value, Mapping):
        return {key: _checked(key, inner, depth + 1) for key, inner in value.items()}
    return [_checked(name, inner, depth + 1) for inner in value]


def to_stored(environment: Environment) -> str:
    """Write an environment as a snapshot holds it: the same one always in the same way."""
    files = {
        path: {"sha256": state.sha256, "size": state.size}
        for path, state in environment.files.items()
        if not state.problem
    }
    document = {"values": environment.values, **({"files": files} if files else {})}
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def from_stored(text: str) -> Environment:
    """Return the environment of a snapshot."""
    document = json.loads(text)
    files = {path: FileState(**state) for path, state in document.get("files", {}).items()}
    return Environment(document.get("values", {}), files)
