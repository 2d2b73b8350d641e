"""The caller's side of Soar: starting the process that owns the kernel, asking it, giving it up in time."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from castle.config.settings import Settings
from castle.errors import CastleError
from castle.search import soar_kernel
from castle.search.run import StageUnavailable

PACKAGED_RULES = Path(__file__).parents[1] / "rules" / "castle-boost.soar"
MIND_RULES = PACKAGED_RULES.with_name("castle-mind.soar")
"""The packaged rules and those that go by what the mind holds, too."""
ANSWER_SECONDS = 0.2
"""Time for one query."""
START_SECONDS = 2.0
"""Time for the process, the bindings and the rules, about 0.1 s, which the first query needs as well."""

Fields = Sequence[tuple[str, str | int | float]]
"""Attributes and values of one element of working memory."""

_MODULES = ("soar_sml", "Python_sml_ClientInterface")


class SoarUnavailable(CastleError):
    """Soar gave no boosts; the message is the reason in a few words, to stand after "skipped:"."""


class SoarMissing(SoarUnavailable, StageUnavailable):
    """There are no bindings in this Python, or they are switched off."""


@dataclass(slots=True)
class _Child:
    """A running process, and the lines it wrote that nobody has read; an empty line is their end."""

    process: subprocess.Popen[bytes]
    stamp: tuple[int, ...]
    lines: SimpleQueue[bytes] = field(default_factory=SimpleQueue)
    ready: bool = False
    waited: bool = False


class SoarEngine:
    """Soar with one rules file, in a process of its own that is started when needed.

    ``rules`` is the user's own file, None means the packaged one. A rules file is code to trust: with the
    user's rights it can read and write files and run commands as soon as it is loaded. It is loaded anew when
    its modification time changes; files that it sources are not watched. Any number of threads may ask: they
    take turns.
    """

    def __init__(
        self,
        rules: Path | None = None,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.own_rules = rules not in (None, MIND_RULES)
        self.rules = PACKAGED_RULES if rules is None else rules.expanduser().absolute()
        self._answer_seconds = answer_seconds
        self._start_seconds = start_seconds
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._failure: tuple[tuple[int, ...], str] | None = None

    @property
    def pid(self) -> int | None:
        """The number of the running process, or None."""
        child = self._child
        return None if child is None else child.process.pid

    def prepare(self) -> None:
        """Start the process without waiting for it, so that a later question finds it ready.

        Raises SoarUnavailable.
        """
        with self._turn():
            self._running()

    def ask(self, context: Fields, memories: Sequence[Fields]) -> list[tuple[str, ...]]:
        """Return the tags that the rules give each memory, sorted.

        Raises SoarUnavailable: ``timeout`` when there is no answer within the time allowed. The process is
        ended then, and the next question starts another.
        """
        with self._turn():
            child = self._running()
            self._await_ready(child)
            request = json.dumps({"context": context, "memories": memories}).encode("ascii") + b"\n"
            try:
                pipe = _pipe(child.process.stdin)
                pipe.write(request)
                pipe.flush()
                answer = self._answer(child, self._answer_seconds)
            except OSError as error:
                self._stop()
                raise SoarUnavailable(f"the Soar process cannot be reached: {error}") from error
            except BaseException:
                # Also when the user interrupts: an answer that nobody reads would be taken for the next one.
                self._stop()
                raise
            return [tuple(tags) for tags in answer["tags"]]

    def close(self) -> None:
        """End the process; a later question starts another."""
        child = self._child
        if child is not None:
            # Before the lock, so that a thread that waits for an answer gives it up.
            child.process.kill()
        with self._lock:
            self._stop()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        child = self._child
        settled = child is not None and child.ready
        if not self._lock.acquire(timeout=self._answer_seconds if settled else self._start_seconds):
            raise SoarUnavailable("timeout")
        try:
            yield
        finally:
            self._lock.release()

    def _running(self) -> _Child:
        """Return the process that has the rules as they are now on disk."""
        module = bindings()
        try:
            status = self.rules.stat()
        except OSError as error:
            raise SoarUnavailable(f"the rules {self.rules} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):
            raise SoarUnavailable(f"the rules {self.rules} are no regular file")
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._failure is not None and self._failure[0] == stamp:
            raise SoarUnavailable(self._failure[1])
        child = self._child
        if child is not None and (child.stamp != stamp or child.process.poll() is not None):
            self._stop()
            child = None
        if child is None:
            child = self._child = _start(module, self.rules, stamp)
        return child

    def _await_ready(self, child: _Child) -> None:
        if child.ready:
            return
        # Whoever comes after the first waits no longer than for an answer; the process goes on starting.
        limit = self._answer_seconds if child.waited else self._start_seconds
        child.waited = True
        greeting = self._answer(child, limit)
        if "error" in greeting:
            reason = f"the rules {self.rules}: {greeting['error']}"
            self._failure = (child.stamp, reason)
            self._stop()
            raise SoarUnavailable(reason)
        child.ready = True

    def _answer(self, child: _Child, seconds: float) -> dict[str, Any]:
        try:
            line = child.lines.get(timeout=seconds)
        except Empty:
            raise SoarUnavailable("timeout") from None
        if not line:
            self._stop()
            raise SoarUnavailable(f"the Soar process ended with status {child.process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        # It keeps nothing that is worth a farewell, and it may be deep in the rules.
        child.process.kill()
        child.process.wait()
        with contextlib.suppress(OSError):
            _pipe(child.process.stdin).close()


def bindings() -> str:
    """Name the module of the Soar bindings; raises SoarMissing with what helps."""
    if os.environ.get("CASTLE_SML_DISABLED", "").strip().lower() in ("1", "true", "yes"):
        raise SoarMissing("Soar is switched off by CASTLE_SML_DISABLED")
    for name in _MODULES:
        with contextlib.suppress(ValueError):
            if find_spec(name) is not None:
                return name
    raise SoarMissing('Soar is not installed: pip install "cognitive-castle[soar]"')


def _start(module: str, rules: Path, stamp: tuple[int, ...]) -> _Child:
    # -P: the directory of the script, which is a package of Castle's, must not be a source of modules.
    command = [sys.executable, "-P", soar_kernel.__file__, module, str(rules)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise SoarUnavailable(f"the Soar process cannot be started: {error}") from error
    child = _Child(process, stamp)
    # A thread, because Windows cannot wait for a pipe with a time limit.
    threading.Thread(target=_pump, args=(process.stdout, child.lines), daemon=True, name="soar").start()
    return child


def _pump(stream: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(b"")


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "the process was started with pipes"
    return stream


def rules_of(settings: Settings) -> Path | None:
    """Return the file of the rules that the settings ask for, None for the packaged ones."""
    return settings.soar_rules_path or (MIND_RULES if settings.soar_mind else None)


_engines: dict[Path | None, SoarEngine] = {}
_engines_lock = threading.Lock()


def shared_engine(rules: Path | None = None) -> SoarEngine:
    """Return this process's engine for a rules file; it is closed when the interpreter exits."""
    with _engines_lock:
        if rules not in _engines:
            _engines[rules] = SoarEngine(rules)
        return _engines[rules]


@atexit.register
def close_engines() -> None:
    """End every Soar process that ``shared_engine`` gave out."""
    with _engines_lock:
        for engine in _engines.values():
            engine.close()
        _engines.clear()


def _forget_engines() -> None:
    global _engines_lock
    _engines_lock = threading.Lock()
    _engines.clear()


if hasattr(os, "register_at_fork"):
    # A forked copy would read its parent's answers.
    os.register_at_fork(after_in_child=_forget_engines)
