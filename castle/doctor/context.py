"""What the checks work with: the settings and the palace, opened once, or the reason why it cannot be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from castle.clock import Clock, system_clock
from castle.config import Settings
from castle.errors import CastleError

if TYPE_CHECKING:
    from castle.store.palace import Palace


class Unopened(CastleError):
    """A check needs the palace, which cannot be opened; another line says why."""


@dataclass(slots=True)
class Context:
    """The surroundings of one examination.

    ``open`` opens the palace. ``trouble`` is why the user's settings could not be read; ``settings`` are the
    defaults then. ``online`` allows questions to services beyond this machine. ``home`` is the user's.
    """

    settings: Settings
    open: Callable[[], Palace]
    trouble: str = ""
    online: bool = False
    home: Path = field(default_factory=Path.home)
    clock: Clock = system_clock
    _opened: Palace | None = None
    _failure: CastleError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def root(self) -> Path:
        """The directory of the palace."""
        return self.settings.palace_path

    def opened(self) -> Palace:
        """Return the palace; raises what its opening raised."""
        with self._lock:
            if self._opened is None and self._failure is None:
                try:
                    self._opened = self.open()
                except CastleError as error:
                    self._failure = error
            if self._opened is None:
                assert self._failure is not None
                raise self._failure
            return self._opened

    def palace(self) -> Palace:
        """Return the palace; raises Unopened where it cannot be opened."""
        try:
            return self.opened()
        except CastleError as error:
            raise Unopened("the palace cannot be opened") from error
