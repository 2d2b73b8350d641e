"""What could not be read of a transcript, kept beside how far it was read: every run tells it again."""

from __future__ import annotations

import json
from collections.abc import Mapping

from castle.records import Skipped
from castle.store.sessions import Reading

MOST = 1000
"""How many records are kept one by one."""

_FOUND, _MORE = "#broken", "#broken more"


class Unreadable:
    """Records of one transcript that cannot be read; of very many the first, and how many more there were."""

    def __init__(self, found: Mapping[str, str] | None = None, more: int = 0) -> None:
        self._found = dict(found or {})
        self._more = more

    @classmethod
    def of(cls, reading: Reading) -> Unreadable:
        """Return what an earlier reading could not read."""
        state = json.loads(reading.state)
        return cls(state.get(_FOUND), state.get(_MORE, 0))

    @property
    def state(self) -> dict[str, object]:
        """What is to be kept."""
        return {_FOUND: self._found, _MORE: self._more} if self._found else {}

    def add(self, where: str, why: str) -> None:
        """Note a record that cannot be read."""
        if where in self._found or len(self._found) < MOST:
            self._found[where] = why
        else:
            self._more += 1

    def told(self, address: str) -> list[Skipped]:
        """Return it as it stands in a report."""
        found = [Skipped(where, "broken", why) for where, why in self._found.items()]
        return [*found, Skipped(address, "broken", f"and {self._more:,} more")] if self._more else found
