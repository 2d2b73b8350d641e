"""The drainer: a process that files what hooks have noted, and ends when nothing more comes.

There is one for each palace, held by a kernel lock. A hook that finds the lock taken leaves its event to the
drainer that has it, which therefore looks once more after giving it back. What it does stands in
``<palace>/spool/drain.log``, one line each time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from castle.clock import system_clock, to_iso
from castle.errors import CastleError, PalaceError
from castle.hooks.spool import append
from castle.hooks.start import take
from castle.store.spool import forget_turns, pending, tell_failure

if TYPE_CHECKING:
    from castle.mine.spool import DrainReport, Stamp
    from castle.service import Castle

IDLE_SECONDS = 2.0
POLL_SECONDS = 0.1
TOAST_SECONDS = 10
FORGET_SECONDS = 30 * 86_400
"""After what time without a stop the count of a session's stops is thrown away."""

NICE = 5
"""How much less than others the drainer may use the processor, in the system's own steps."""


def main(argv: Sequence[str] | None = None) -> None:
    """Drain the palace that ``--palace`` names, with the lock that ``--lock`` has open; or only compile."""
    from castle import config
    from castle.config.compiled import compile_hooks

    arguments = list(sys.argv[1:] if argv is None else argv)
    if "--compile" in arguments:
        compile_hooks(config.load())
        return
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    root = Path(given["--palace"])
    lock = int(given["--lock"]) if "--lock" in given else None
    if lock is not None:
        os.set_inheritable(lock, False)
    if not root.exists():
        from castle.store.restoring import finish_stopped

        with suppress(CastleError):  # whoever opens the palace below says why
            finish_stopped(root)
    with suppress(OSError):
        os.chdir(root)  # the project in which the hook ran must not be held on to
    if hasattr(os, "nice"):
        os.nice(NICE)
    try:
        compile_hooks(config.load({"palace_path": str(root)}))
        serve(root, lock)
    except Exception as error:  # the edge of the process: nobody reads its exit code
        what = str(error) if isinstance(error, CastleError | OSError) else f"{type(error).__name__}: {error}"
        _log(f"failed: {what}")
        tell_failure(root, system_clock(), "", "", f"the drainer failed: {_masked(what)}")


def serve(root: Path, lock: int | None = None) -> None:
    """Drain until nothing comes any more; without the lock, take it, or leave the work to who has it."""
    from castle.service import Castle

    while True:
        held = take(str(root)) if lock is None else lock
        if held is None:
            return
        try:
            _sign(held)
            with Castle(root) as castle:
                _Work(castle).run()
        finally:
            with suppress(OSError):  # who reads it must not take a later process for this one
                os.ftruncate(held, 0)
            os.close(held)
        lock = None
        # An event noted between the last look and the release has found the lock taken.
        if not pending(root):
            return


def _sign(held: int) -> None:
    """Write into the lock whose it is, for people who look for the process."""
    with suppress(OSError):
        os.ftruncate(held, 0)
        os.write(held, b"%d\n" % os.getpid())
    _log("started")


class _Work:
    """What one drainer does, from its start until it is idle."""

    def __init__(self, castle: Castle) -> None:
        self._castle = castle
        self._root = castle.root
        self._saved: dict[str, Stamp] = {}
        self._messages = 0
        self._changed = False

    def run(self) -> None:
        """Drain, wait a moment for more, and prepare what sessions begin with."""
        self._pass()
        while True:
            self._until_idle()
            if self._grown():
                continue
            if self._changed:
                self._changed = False
                self._prepare()
            if not pending(self._root):
                break
        self._toast()
        forget_turns(self._root, time.time() - FORGET_SECONDS)

    def _until_idle(self) -> None:
        quiet = time.monotonic()
        while time.monotonic() - quiet < IDLE_SECONDS:
            if pending(self._root):
                self._pass()
                quiet = time.monotonic()
            time.sleep(POLL_SECONDS)

    def _pass(self) -> None:
        from castle.mine.spool import BUSY

        while (report := self._castle.capture()).notes[:1] == (BUSY,):  # a sweep is at work
            time.sleep(POLL_SECONDS)
        if report.locked_out:
            raise PalaceError(report.notes[0])
        self._saved.update(report.saved)
        self._messages += report.messages_new
        # What is believed may have changed without a word: a session that begins has conditions checked.
        self._changed = self._changed or report.events > 0
        if report.events:
            _log(_line(report))

    def _grown(self) -> bool:
        """Note again what has grown since it was filed: a host may write its last words after its hook."""
        from castle.mine.spool import LATE, stamp

        grown = False
        for transcript, before in self._saved.items():
            try:
                same = stamp(Path(transcript).stat()) == before
            except OSError:
                continue
            if not same:
                event = {"v": 1, "at": system_clock(), "hook": LATE, "transcript": transcript}
                append(str(self._root), event)
                grown = True
        self._saved.clear()
        return grown

    def _prepare(self) -> None:
        try:
            self._castle.prepare_wake_up()
        except CastleError as error:
            _log(f"no wake-up was prepared: {error}")

    def _toast(self) -> None:
        """Show how much was filed, where the user wants that and the system can."""
        if not self._messages or not self._castle.settings.hooks.desktop_toast:
            return
        import shutil
        import subprocess

        said = f"{self._messages} message{'' if self._messages == 1 else 's'} filed"
        for command in (
            ["notify-send", "--app-name=castle", "Cognitive Castle", said],
            ["osascript", "-e", f'display notification "{said}" with title "Cognitive Castle"'],
        ):
            if shutil.which(command[0]):
                with suppress(OSError, subprocess.TimeoutExpired):
                    subprocess.run(command, capture_output=True, timeout=TOAST_SECONDS, check=False)
                return


def _line(report: DrainReport) -> str:
    """Return what a run did: numbers and reasons, and nobody's words."""
    parts = [
        f"{report.events} events",
        f"{report.transcripts} transcripts",
        f"{report.messages_new} messages filed",
    ]
    parts += [f"{report.failed} failed"] if report.failed else []
    parts += [f"{report.kept} kept"] if report.kept else []
    parts += [f"{skip.path}: {skip.reason}" for skip in (*report.skipped, *report.ignored)][:5]
    return ", ".join(parts)


def _masked(text: str) -> str:
    from castle.text.served import mask_secrets

    return mask_secrets(text, b"")


def _log(text: str) -> None:
    """Write one line to stderr, which is the log of the drainer."""
    line = " ".join(_masked(text).split())
    stamped = f"{to_iso(system_clock())} {os.getpid()} {line}\n"
    with suppress(OSError):
        os.write(2, stamped.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
