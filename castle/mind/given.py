"""What somebody gives beside a text: the options of a save, read, checked, and as they may be stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from castle.errors import UsageError
from castle.store.mind_facts import clamp
from castle.store.projection import legal_text
from castle.text.served import mask_secrets


class Given:
    """The options of one save, read and checked."""

    def __init__(self, options: Mapping[str, Any], salt: bytes) -> None:
        self._options = {name: shown(value, salt) for name, value in options.items()}

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
        return [str(tag) for tag in value]


def shown(value: Any, salt: bytes) -> Any:
    """Return a value as it may be stored beside the archive and shown: legal, with its secrets masked."""
    if isinstance(value, str):
        return mask_secrets(legal_text(value), salt)
    if isinstance(value, Mapping):
        return {shown(str(key), salt): shown(item, salt) for key, item in value.items()}
    return [shown(item, salt) for item in value] if isinstance(value, list | tuple) else value
