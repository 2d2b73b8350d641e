"""A model behind a command: asked through its standard input, bounded in time and size."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from castle.llm.base import MAX_ANSWER_BYTES, MORE_TIME, LlmError, UnansweredError
from castle.llm.waiting import in_background


def run(
    argv: Sequence[str], text: bytes, seconds: float, *, without: Sequence[str] = ()
) -> tuple[int, bytes, bytes]:
    """Run a command on the text, in an empty directory; return its exit code, its output and its errors.

    ``without`` are variables of the environment that it must not see. Raises UnansweredError after
    ``seconds``, when the command and all it started are ended, and LlmError when it cannot be run.
    """
    deadline = time.monotonic() + seconds
    env = {name: value for name, value in os.environ.items() if name not in without}
    # An empty directory: a project's own instructions and settings are none of the question's business.
    with tempfile.TemporaryDirectory(prefix="castle-llm-", ignore_cleanup_errors=True) as directory:
        try:
            process = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=directory,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise LlmError(f"cannot run {argv[0]}: {error.strerror}") from None
        assert process.stdin and process.stdout and process.stderr
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        in_background(lambda: _feed(stdin, text))
        out = in_background(lambda: _drain(stdout, MAX_ANSWER_BYTES + 1))
        err = in_background(lambda: _drain(stderr, 10_000))
        try:
            return (
                process.wait(deadline - time.monotonic()),
                out.result(max(deadline - time.monotonic(), 0)),
                err.result(max(deadline - time.monotonic(), 0)),
            )
        except (subprocess.TimeoutExpired, TimeoutError):
            _kill(process)
            name = Path(argv[0]).stem
            raise UnansweredError(f"{name} did not answer within {seconds:g} s; {MORE_TIME}") from None
        except BaseException:
            _kill(process)
            raise


def _feed(pipe: IO[bytes], text: bytes) -> None:
    """Write the text; a command that ends without reading it all is judged by what it says."""
    with suppress(OSError), pipe:
        rest = memoryview(text)
        while rest:
            rest = rest[pipe.write(rest) :]


def _drain(pipe: IO[bytes], most: int) -> bytes:
    """Read to the end, so that the command can finish, and keep the first ``most`` bytes."""
    kept = bytearray()
    with pipe:
        while chunk := pipe.read(65_536):
            kept += chunk[: most - len(kept)]
    return bytes(kept)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and all it started."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
