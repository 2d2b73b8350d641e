"""What a server does by itself: small jobs, each when it is due, in the one process that holds the lease.

Several servers may have a palace open; the lease sees to it that one of them works, and another one goes on
when that one ends, however it ends. Heavy jobs begin thirty seconds after the start: a process that does not
live as long does none. What a job did, or why it failed, stands in the status of the mind.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from castle.clock import to_iso
from castle.errors import CastleError, PalaceBusyError
from castle.store.ledger import to_json
from castle.store.mind_rows import lease, new_holder, release, set_meta
from castle.store.mind_tables import mem_meta

if TYPE_CHECKING:
    from castle.store.palace import Palace

FIRST_SECONDS = 30.0
"""How old a server is before it does anything heavy."""
LEASE = "background"
LEASE_SECONDS = 120.0
AGAIN_SECONDS = 20.0
"""How long after the lease was refused it is asked for again."""
LOOK_SECONDS = 1.0
STOP_SECONDS = 3.0
_HASTE = 0.5
_log = logging.getLogger(__name__)
_PREFIX = "background."
_MOST_ERROR = 300


@dataclass(frozen=True, slots=True)
class Job:
    """One job: ``work`` is called every so many seconds, the first time ``first`` seconds after the start.

    It is bounded and returns what it did, something empty where there was nothing to do.
    """

    name: str
    every: float
    work: Callable[[], Mapping[str, Any] | None]
    first: float = FIRST_SECONDS


class Scheduler:
    """Works for the palace that ``palace`` gives, None while there is none to work for.

    ``clock`` is in seconds and never goes back.
    """

    def __init__(
        self,
        jobs: tuple[Job, ...],
        palace: Callable[[], Palace | None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holder = new_holder()
        self._jobs = jobs
        self._palace = palace
        self._clock = clock
        self._due: dict[str, float] = {}
        self._leased_until = 0.0
        self._not_before = 0.0
        self._working = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a job is running at this moment."""
        return self._working.locked()

    def start(self) -> None:
        """Begin to look every second what is due, in a thread of its own."""
        self.begin()
        self._thread = threading.Thread(target=self._run, name="castle-background", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Count the time from now on."""
        now = self._clock()
        self._due = {job.name: now + job.first for job in self._jobs}

    def tick(self) -> list[str]:
        """Run the jobs that are due, if the lease can be had; returns their names."""
        due = [job for job in self._jobs if self._due[job.name] <= self._clock()]
        if not due:
            return []
        with self._working:
            palace = self._palace()
            if palace is None or palace.ledger.read_only or not self._leased(palace):
                return []
            return [job.name for job in due if not self._ended.is_set() and self._done(job, palace)]

    def stop(self) -> None:
        """Begin nothing more; may be called by a handler of a signal, as it waits for nothing."""
        self._ended.set()

    def join(self) -> None:
        """Wait a few seconds for what runs, after ``stop``."""
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def release(self) -> None:
        """Give the lease back; where that cannot be done, it ends by itself."""
        if not self._leased_until:
            return
        self._leased_until = 0.0
        with suppress(CastleError):
            palace = self._palace()
            if palace is not None:
                with palace.ledger.write(_HASTE) as cx:
                    release(cx, LEASE, self.holder)

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self.tick()
            except (
                Exception
            ) as error:  # the edge of a thread: what cannot be done now may be at the next look
                _log.warning("background work waits: %s", error)
                self._not_before = self._clock() + AGAIN_SECONDS
        self.release()

    def _leased(self, palace: Palace) -> bool:
        """Hold the lease, renewed when half of it is over."""
        now = self._clock()
        if now + LEASE_SECONDS / 2 < self._leased_until:
            return True
        if now < self._not_before:
            return False
        held = False
        with suppress(PalaceBusyError), palace.ledger.write(_HASTE) as cx:
            held = lease(cx, LEASE, self.holder, LEASE_SECONDS, palace.ledger.clock())
        self._leased_until = now + LEASE_SECONDS if held else 0.0
        self._not_before = 0.0 if held else now + AGAIN_SECONDS
        return held

    def _done(self, job: Job, palace: Palace) -> bool:
        """Run a job and note what it did; that a note cannot be written spoils nothing."""
        began = self._clock()
        told: Mapping[str, Any] | None = None
        error = ""
        try:
            told = job.work()
        except PalaceBusyError:
            pass
        except Exception as failure:  # the edge of a job: one that fails keeps no other from its turn
            known = isinstance(failure, CastleError)
            error = str(failure) if known else f"{type(failure).__name__}: {failure}"
        self._due[job.name] = self._clock() + job.every
        if told or error:
            with suppress(CastleError):
                self._note(job, palace, told, error, self._clock() - began)
        return True

    def _note(
        self, job: Job, palace: Palace, told: Mapping[str, Any] | None, error: str, seconds: float
    ) -> None:
        with palace.ledger.write(_HASTE) as cx:
            said = {
                "at": to_iso(palace.ledger.clock()),
                "ms": round(seconds * 1000),
                **({"error": error[:_MOST_ERROR]} if error else {"did": dict(told or {})}),
            }
            set_meta(cx, f"{_PREFIX}{job.name}", to_json(said))


def background(cx: Connection) -> dict[str, Any]:
    """Return what each job did last, when, and in how many milliseconds; or its error."""
    query = select(mem_meta.c.key, mem_meta.c.value).where(mem_meta.c.key.startswith(_PREFIX))
    return {key.removeprefix(_PREFIX): json.loads(value) for key, value in cx.execute(query)}
