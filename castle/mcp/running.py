"""What runs beside the protocol in every server: models being loaded, the local socket, background work."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from castle.errors import CastleError, PalaceBusyError, PalaceError
from castle.mcp.listener import Listener
from castle.mcp.tools import Tools
from castle.mcp.warm import Warmer

if TYPE_CHECKING:
    from castle.mind.scheduler import Job, Scheduler
    from castle.service import Castle
    from castle.store.palace import Palace

PATIENCE = 0.06
"""Seconds that a hook may wait for a call of a tool to end; it gives up soon after."""
NO_MODELS = "this part of the server loads no models"
START_SECONDS = 2.0
"""How long after its start a server begins to look what is to be done, if its palace is in use by then."""
IDLE_STARTS = 15
"""How often that is looked at before it begins in any case."""
EMBED_SECONDS, CONSOLIDATE_SECONDS, INGEST_SECONDS, INDEX_SECONDS = 10.0, 60.0, 2.0, 5.0

T = TypeVar("T")
Told = Mapping[str, Any] | None
Work: TypeAlias = Callable[["Castle"], T]
Worker = Callable[[Callable[["Castle"], Told]], Told]


class Running:
    """The tools of a palace, None for the one that the settings name, with what works beside them."""

    def __init__(self, palace: str | None = None) -> None:
        self._palace = palace
        self._warmer = Warmer()
        self.tools = Tools(palace, self._warmer)
        self._listener = Listener(self._root, self._recall, self.tools.read)
        self._beside = _Beside(palace)
        self._ended = threading.Event()
        self._scheduler: Scheduler | None = None
        self._starter: threading.Thread | None = None

    def start(self) -> None:
        """Begin to answer hooks, a second from now, and to look what is to be done."""
        self._listener.start()
        self._starter = threading.Thread(target=self._schedule, name="castle-starter", daemon=True)
        self._starter.start()

    def stop(self) -> None:
        """Remove the socket of the hooks, begin nothing more; may be called by a handler of a signal."""
        self._ended.set()
        self._listener.stop()
        if self._scheduler is not None:
            self._scheduler.stop()

    def leave_if_busy(self, code: int) -> None:
        """End the process at once if a thread is at work inside a native library.

        Python lets such a thread run into an interpreter that is gone, which may end in an abort.
        """
        if self._starter is not None:
            self._starter.join(START_SECONDS)
        working = self._scheduler
        if working is not None:
            working.join()
        if self._warmer.busy or self.tools.busy or (working is not None and working.busy):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        self._beside.close()

    def ingest(self, body: object, *, local: bool) -> Mapping[str, object]:
        """Keep what a host tells of a session; waits for no tool and no model."""
        done = self._beside.done(lambda castle: castle.ingest(body, local=local))
        told = {
            "accepted": not done.reason,
            "event_id": done.event_id,
            "new": done.new,
            "queued": done.waiting,
        }
        return {**told, "reason": done.reason} if done.reason else told

    def _schedule(self) -> None:
        """Start what works by itself once a palace is in use: importing it must not delay a start."""
        for _ in range(IDLE_STARTS):
            if self._ended.wait(START_SECONDS):
                return
            if self.tools.opened is not None or self._beside.opened:
                break
        from castle.mind.scheduler import Scheduler

        self._scheduler = Scheduler(jobs(self._beside.done, self._opened), self._beside.palace)
        self._scheduler.start()
        if self._ended.is_set():
            self._scheduler.stop()

    def _opened(self, work: Work[Told]) -> Told:
        """Work with the palace that the tools have open, with its models; nothing while they have none."""
        castle = self.tools.opened
        return None if castle is None or castle.unready else work(castle)

    def _root(self) -> Path:
        from castle import config

        return config.load({"palace_path": self._palace}).palace_path

    def _recall(self, prompt: str, cwd: str | None, max_tokens: int) -> str:
        return self.tools.recall(prompt, cwd, max_tokens, PATIENCE)


def jobs(beside: Worker, opened: Worker) -> tuple[Job, ...]:
    """Return what a server does by itself.

    ``beside`` works with a palace of its own that loads no models, ``opened`` with the one of the tools.
    """
    from castle.mind.scheduler import FIRST_SECONDS, Job

    return (
        Job("ingest", INGEST_SECONDS, lambda: beside(lambda c: c.background_absorb()), first=0.0),
        Job("capture", INGEST_SECONDS, lambda: beside(lambda c: c.background_capture()), FIRST_SECONDS),
        Job("index", INDEX_SECONDS, lambda: beside(lambda c: c.background_index()), FIRST_SECONDS),
        Job("embed", EMBED_SECONDS, lambda: opened(lambda c: c.background_embed()), FIRST_SECONDS),
        Job(
            "consolidate",
            CONSOLIDATE_SECONDS,
            lambda: opened(lambda c: c.background_consolidate()),
            FIRST_SECONDS,
        ),
    )


class _Beside:
    """The palace, opened a second time without models, so that no event waits for a call of a tool."""

    def __init__(self, palace: str | None) -> None:
        self._palace = palace
        self._lock = threading.Lock()
        self._castle: Castle | None = None

    @property
    def opened(self) -> bool:
        """Whether it is open."""
        return self._castle is not None

    def palace(self) -> Palace | None:
        """Return the palace, None while there is none."""
        with suppress(CastleError):
            return self._open().background_palace()
        return None

    def done(self, work: Work[T]) -> T:
        """Do some work with it; opened again the next time where another palace may have taken its place."""
        castle = self._open()
        try:
            return work(castle)
        except PalaceError as error:
            if not isinstance(error, PalaceBusyError):
                self.close()
            raise

    def close(self) -> None:
        """Close it; it is opened again when it is needed."""
        with self._lock:
            castle, self._castle = self._castle, None
        if castle is not None:
            castle.close()

    def _open(self) -> Castle:
        from castle.service import Castle

        with self._lock:
            if self._castle is None:
                castle = Castle(self._palace)
                castle.defer_models(NO_MODELS)
                self._castle = castle
            return self._castle
