"""The worker: a process that leads one review and ends. It runs once for each run, whatever becomes of it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from socket import gethostname

from castle.clock import Clock, system_clock, to_iso
from castle.errors import CastleError
from castle.sue.dialogue import Dialogue, begin
from castle.sue.method import LENSES
from castle.sue.processes import began
from castle.sue.report import report
from castle.sue.review import Asking, Call, ReviewFailedError, lead
from castle.sue.runs import REPORT, STATE, TRACE, Plan, RunError, claim, load, write_json, write_text
from castle.sue.specification import Specification
from castle.sue.trace import call_file, call_record, trace

HEARTBEAT_SECONDS = 5.0


def main(argv: Sequence[str] | None = None) -> None:
    """Work on the run whose directory is the one argument."""
    (given,) = sys.argv[1:] if argv is None else argv
    run = Path(given)
    if hasattr(os, "umask"):
        os.umask(0o077)
    try:
        work(run)
    except FileNotFoundError as error:
        if run.exists():
            _log(f"failed: {error}")
        else:  # its drawers were purged
            sys.exit(1)
    except Exception as error:  # the edge of the process: nobody reads its exit code
        _log(f"failed: {type(error).__name__}: {error}")
        sys.exit(1)


def work(run: Path, ask: Asking | None = None, clock: Clock = system_clock) -> bool:
    """Lead the review of a run, unless it was begun before; tell whether it was led to an end.

    ``ask`` answers in place of the model that the run names. Raises OSError when nothing can be written.
    """
    if not claim(run):
        _log("this run was begun before, and nothing is played twice")
        return False
    state = _State(run, clock)
    with state.beating():
        try:
            plan, specification, manifest = load(run)
            asking = ask if ask is not None else _transport(run, plan)
            _Review(run, plan, specification, str(manifest["created_at"]), state).lead(asking)
        except CastleError as error:
            state.end("failed", error=str(error))
        except OSError:
            raise
        except Exception as error:  # the edge of the run: its state must not say that it goes on
            state.end("failed", error=f"{type(error).__name__}: {error}")
            raise
    return state.status == "completed"


def _transport(run: Path, plan: Plan) -> Asking:
    """Return what asks the model of a run; raises RunError when the settings lead elsewhere by now."""
    from castle import config
    from castle.sue.transports import transport

    settings = config.load({"palace_path": str(run.parents[2])})
    found = transport(settings, plan.provider, plan.model, plan.timeout)
    if (found.place, found.external) != (plan.place, plan.external):
        raise RunError(f"the settings lead to {found.place}, and the review was made for {plan.place}")
    return found.ask


class _State:
    """What ``state.json`` says, kept true while the process lives."""

    def __init__(self, run: Path, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.status = "running"
        self._more: dict[str, object] = {"turns": 0, "calls": 0}
        self._own = {"pid": os.getpid(), "began": began(os.getpid()), "host": gethostname()}
        self._write()

    def progress(self, **more: object) -> None:
        """Say how far it has come."""
        with self._lock:
            self._more.update(more)
            self._write()

    def end(self, status: str, **more: object) -> None:
        """Say how it ended; nothing is said after that."""
        with self._lock:
            self._over.set()
            self.status = status
            self._more.update(more)
            self._write()

    def beating(self) -> _Beat:
        """Return what shows that the process lives while it does."""
        return _Beat(self._beat, self._over)

    def _beat(self) -> None:
        with self._lock:
            if not self._over.is_set():
                self._write()

    def _write(self) -> None:
        now = to_iso(self._clock())
        known = {
            "run_id": self._run.name,
            "status": self.status,
            "updated_at": now,
            **self._own,
            **self._more,
        }
        write_json(self._run / STATE, known)


class _Beat:
    def __init__(self, beat: object, over: threading.Event) -> None:
        self._beat = beat
        self._over = over
        self._thread = threading.Thread(target=self._run, name="castle-sue-heartbeat", daemon=True)

    def _run(self) -> None:
        while not self._over.wait(HEARTBEAT_SECONDS):
            try:
                self._beat()  # type: ignore[operator]
            except FileNotFoundError:
                os._exit(1)  # the drawers were purged: nothing of them may be sent any more
            except OSError as error:
                _log(f"no heartbeat: {error}")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class _Review:
    """One review: what is written while it goes on."""

    def __init__(
        self, run: Path, plan: Plan, specification: Specification, created_at: str, state: _State
    ) -> None:
        self._run = run
        self._plan = plan
        self._specification = specification
        self._created_at = created_at
        self._state = state
        self._calls: list[Call] = []
        self._dialogue = begin(LENSES[plan.lens], plan.max_turns)

    def lead(self, ask: Asking) -> None:
        """Lead it to its end, or to where no answer is to be had."""
        error = ""
        try:
            lead(self._dialogue, self._plan.decision, self._specification.lines, ask, self._record)
        except ReviewFailedError as failure:
            error = str(failure)
        self._write_trace(error)
        text = report(
            self._run.name,
            self._created_at,
            self._plan,
            self._specification,
            self._dialogue,
            self._calls,
            error,
        )
        write_text(self._run / REPORT, text)
        terminal = self._dialogue.terminal
        self._state.end("failed" if error else "completed", terminal_state=terminal or "", error=error)

    def _record(self, call: Call, after: Dialogue) -> None:
        self._calls.append(call)
        self._dialogue = after
        write_json(self._run / call_file(call), call_record(call))
        self._write_trace("")
        self._state.progress(turns=len(after.turns), calls=len(self._calls))

    def _write_trace(self, error: str) -> None:
        found = trace(self._run.name, self._plan, self._specification, self._dialogue, self._calls, error)
        write_json(self._run / TRACE, found)


def _log(text: str) -> None:
    """Write one line to stderr, which is the log of the worker."""
    line = f"{to_iso(system_clock())} {os.getpid()} {' '.join(text.split())}\n"
    with suppress(OSError):
        os.write(2, line.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
