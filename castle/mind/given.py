"""What somebody gives beside a text: the options of a save, read, checked, and as they may be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from castle.errors import UsageError
from castle.store.mind_facts import clamp
from castle.store.projection import legal_text
from castle.text.served import mask_secrets

NAMES = ("session_id", "task_id", "agent", "task_type", "variant_of")
MOST_NAME = 500
"""Characters of what names a session, a task or an agent, and of a tag."""
MOST_DEEP = 100
"""How deep what is given may be nested."""


class Given:
    """The options of one save, read and checked."""

    def __init__(self, options: Mapping[str, Any], salt: bytes) -> None:
        self._options = {}
        for name, value in options.items():
            try:
                self._options[name] = shown(value, salt)
            except UsageError as error:
                raise UsageError(f"{name}: {error}") from error
        for name in NAMES:
            short(name, self.text(name))

    def get(self, name: str, default: object = None) -> Any:
        """Return an option as it was given."""
        return self._options.get(name, default)

    def text(self, name: str) -> str:
        """Return an option that is a text, "" where it was not given."""
        value = self._options.get(name, "")
        if not isinstance(value, str):
            raise UsageError(f"{name} is a text, not {value!r}")
        return value.strip()

    def number(self, name: str, default: float | None, low: float, high: float) -> float | None:
        """Return an option that is a number within its bounds."""
        value = self._options.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise UsageError(f"{name} is a number between {low:g} and {high:g}, not {value!r}")
        return clamp(value, low, high)

    def names(self, name: str) -> list[str]:
        """Return an option that is a list of texts."""
        value = self._options.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"{name} is a list of texts, not {value!r}")
        return list(value)

    @property
    def metadata(self) -> dict[str, object]:
        """What somebody notes beside the text."""
        value = self._options.get("metadata", {})
        if not isinstance(value, Mapping):
            raise UsageError(f"metadata is an object, not {value!r}")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"metadata is what JSON can hold: {error}") from error
        return {str(key): item for key, item in value.items() if key != "tags"}

    @property
    def tags(self) -> list[str]:
        """The tags that were given, or that stand in the metadata."""
        beside = self._options.get("metadata", {})
        value = self._options.get("tags") or (beside.get("tags") if isinstance(beside, Mapping) else None)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise UsageError(f"tags are a list of texts, not {value!r}")
        return [short("a tag", str(tag)) for tag in value]


def short(name: str, value: str) -> str:
    """Return what names something, as a session; raises UsageError for one that is too long to be shown."""
    if len(value) > MOST_NAME:
        raise UsageError(f"{name} has {len(value):,} characters, {MOST_NAME} are the most")
    return value


def shown(value: Any, salt: bytes, deep: int = 0) -> Any:
    """Return a value as it may be stored beside the archive and shown: legal, with its secrets masked.

    Raises UsageError for one that is nested too deep.
    """
    if isinstance(value, str):
        return mask_secrets(legal_text(value), salt)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if deep >= MOST_DEEP:
        raise UsageError(f"what is given is nested {MOST_DEEP} deep at most")
    if isinstance(value, Mapping):
        return {shown(str(key), salt): shown(item, salt, deep + 1) for key, item in value.items()}
    return [shown(item, salt, deep + 1) for item in value]
