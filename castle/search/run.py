"""One search on its way: what each stage did, how long it took, and what could not be done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from castle.errors import CastleError
from castle.records import StageReport
from castle.search.candidates import Candidate

_spent = threading.local()


@contextmanager
def model_time() -> Iterator[None]:
    """Count the time inside as time of a model, for the stage that runs in this thread."""
    started = time.perf_counter()
    try:
        yield
    finally:
        _spent.seconds = getattr(_spent, "seconds", 0.0) + time.perf_counter() - started


class StageUnavailable(CastleError):
    """What a stage needs is not there; nothing has failed."""


class Run:
    """The reports of a search, in the order of its stages.

    ``without`` says why it has to do without models, "" if it need not.
    """

    def __init__(self, without: str = "") -> None:
        self.without = without
        self.reports: list[StageReport] = []
        self.degraded: list[str] = [without] if without else []

    def stage(
        self, name: str, work: Callable[[], Sequence[Candidate]], given: Sequence[Candidate] = ()
    ) -> list[Candidate]:
        """Run a stage; where it cannot run, report why and go on with what was ``given`` to it."""
        found, report, failure = timed(name, work, given)
        self.add(report, failure)
        return found

    def add(self, report: StageReport, failure: str = "") -> None:
        """Note what a stage did."""
        self.reports.append(report)
        if failure:
            self.degraded.append(failure)

    def skip(self, name: str, reason: str, candidates: int = 0) -> None:
        """Note that a stage did not run."""
        self.add(StageReport(name, f"skipped: {reason}", 0.0, candidates))


def timed(
    name: str, work: Callable[[], Sequence[Candidate]], given: Sequence[Candidate] = ()
) -> tuple[list[Candidate], StageReport, str]:
    """Run a stage in this thread; return its candidates, its report, and why it failed, if it did."""
    _spent.seconds = 0.0
    started = time.perf_counter()
    status, failure = "ran", ""
    try:
        found = list(work())
    except StageUnavailable as error:
        found, status = list(given), f"skipped: {error}"
    except CastleError as error:
        found, status, failure = list(given), f"skipped: {error}", f"{name}: {error}"
    except Exception as error:  # damaged rows, or a mistake: the other stages still have an answer
        reason = f"{type(error).__name__}: {error}"
        found, status, failure = list(given), f"skipped: {reason}", f"{name}: {reason}"
    seconds = time.perf_counter() - started
    return found, StageReport(name, status, seconds, len(found), _spent.seconds), failure
