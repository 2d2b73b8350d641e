"""Consolidation by itself: a process that lives longer looks every minute whether a cycle is due.

Several processes may look; one of them runs the cycle, which a lease sees to. Nothing begins in the first
thirty seconds of a process: a short-lived one does no heavy work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from castle.mind.consolidation import consolidate, should_run

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.store.palace import Palace

FIRST_SECONDS, EVERY_SECONDS = 30.0, 60.0
ACTOR = "background"


def consolidate_if_due(palace: Palace, llm: Provider | None = None) -> dict[str, Any] | None:
    """Run a cycle if one is due, and return what it came to; None where none is, or it cannot be written."""
    if palace.ledger.read_only or not should_run(palace):
        return None
    return consolidate(palace, llm=llm, actor=ACTOR)


class Background:
    """A thread that consolidates when it is due. ``work`` is called each time; ``told`` is what it last told.

    ``work`` is usually ``consolidate_if_due`` on a palace that is open.
    """

    def __init__(
        self,
        work: Callable[[], dict[str, Any] | None],
        *,
        first: float = FIRST_SECONDS,
        every: float = EVERY_SECONDS,
    ) -> None:
        self.told: dict[str, Any] | None = None
        self.failed = ""
        self._work = work
        self._first = first
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="castle-mind-background", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a cycle that runs comes to its end first."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait = self._first
        while not self._ended.wait(wait):
            wait = self._every
            try:
                self.told = self._work() or self.told
                self.failed = ""
            except Exception as error:  # the edge of a thread: the next look may go well
                self.failed = str(error) or type(error).__name__
