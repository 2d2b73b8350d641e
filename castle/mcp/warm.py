"""Loading models in a thread of its own, so that no call of a tool waits for them."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from castle.errors import CastleError

if TYPE_CHECKING:
    from castle.service import Castle

# Numbers of glibc's mallopt, which no module of Python has.
_TRIM_THRESHOLD, _ARENA_MAX = -1, -8
_TRIM_BYTES = 1_000_000
_ARENAS = 2

AGAIN_SECONDS = 60.0
"""How long after a failure loading is tried once more."""


class Warmer:
    """Has the models of an open palace loaded, beginning when the first call that opened it is answered.

    Beginning with the call itself would make it slower: Python imports in one thread at a time.
    """

    def __init__(self) -> None:
        self._castle: Castle | None = None
        self._thread: threading.Thread | None = None
        self._next = 0.0
        self._done = False

    @property
    def busy(self) -> bool:
        """Whether models are being loaded at this moment."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for models that are being loaded, no longer than ``seconds``."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def before(self, castle: Castle) -> None:
        """Let the searches of a palace do without models until these are there."""
        if castle is self._castle:
            return
        with suppress(CastleError):  # the call itself will say why the palace cannot be opened
            castle.defer_models()
            self._castle, self._next, self._done = castle, 0.0, False

    def after(self) -> None:
        """Begin to load what ``before`` has put off, unless that is under way."""
        if self._castle is None or self._done or self.busy or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + AGAIN_SECONDS
        self._thread = threading.Thread(
            target=self._load, args=(self._castle,), name="castle-models", daemon=True
        )
        self._thread.start()

    def _load(self, castle: Castle) -> None:
        _give_back_memory()
        try:
            castle.load_models()
        except Exception as error:  # the edge of a thread: whatever it is, searches tell it
            reason = str(error) if isinstance(error, CastleError) else f"{type(error).__name__}: {error}"
            castle.defer_models(f"the embedder cannot be loaded; words only: {reason}")
        else:
            self._done = castle is self._castle


def _give_back_memory() -> None:
    """Have free memory returned to the system, where the C library is glibc.

    Left alone, it keeps a heap for each of the native libraries' threads: 570 instead of 375 MB after fifty
    small notes.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_ARENA_MAX, _ARENAS)
