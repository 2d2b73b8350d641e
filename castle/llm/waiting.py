"""Waiting for something for so long and no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

RETRY_S = 30.0
"""Seconds for which something that was not there is not looked for again."""


def in_background(work: Callable[[], T]) -> Future[T]:
    """Do the work in a thread of its own that does not keep the process alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # the edge of the thread: whoever waits gets it, whatever it is
            future.set_exception(error)

    threading.Thread(target=run, name="castle-llm", daemon=True).start()
    return future


class Probes:
    """What was found out about servers: what is there is believed, what is missing is looked for later."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[str | None, float]] = {}

    def ask(self, key: Hashable, probe: Callable[[], str | None]) -> str | None:
        """Return what the probe last found: None, or the reason, which is asked for anew after a while."""
        known = self._known.get(key)
        if known is not None and (known[0] is None or self._clock() < known[1]):
            return known[0]
        reason = probe()
        self._known[key] = (reason, self._clock() + RETRY_S)
        return reason

    def rest(self, key: Hashable, reason: str) -> None:
        """Take something for missing for a while, because it failed."""
        self._known[key] = (reason, self._clock() + RETRY_S)

    def clear(self) -> None:
        """Look again for everything."""
        self._known.clear()


PROBES = Probes()
"""The probes of this process."""
