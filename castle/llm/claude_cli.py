"""Models through the ``claude`` command, which brings its own login."""

from __future__ import annotations

import json as jsonlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from castle.llm.base import JSON_ONLY, MAX_ANSWER_BYTES, MORE_TIME, TIMEOUT_S, LlmError, one_line
from castle.llm.waiting import in_background

MODEL = "haiku"

# What is asked about may hold instructions: the command may neither act on them nor run the user's hooks,
# which would file the question as a memory.
_TOOLS = ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Task", "WebFetch", "WebSearch", "Write")
_SETTINGS = jsonlib.dumps({"disableAllHooks": True, "permissions": {"deny": _TOOLS}})

_NESTING = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
"""Variables by which the command notices that it runs inside itself, and refuses."""


@dataclass(frozen=True, slots=True)
class ClaudeCli:
    """A model that ``claude -p`` asks."""

    model: str = MODEL
    timeout: float = TIMEOUT_S

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return "claude-cli"

    def available(self) -> str | None:
        """Return None when the command is on PATH, else the reason."""
        return None if shutil.which("claude") else "the command claude is not on PATH; install Claude Code"

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises LlmError."""
        command = shutil.which("claude")
        if command is None:
            raise LlmError(self.available() or "")
        argv = [
            command, "-p", "--output-format", "json", "--model", self.model, "--tools", "",
            "--disable-slash-commands", "--no-session-persistence", "--settings", _SETTINGS,
            "--strict-mcp-config", "--mcp-config", '{"mcpServers":{}}',
            "--append-system-prompt", (f"{system}\n\n{JSON_ONLY}" if json else system).replace("\0", ""),
        ]  # fmt: skip
        status, out, err = _run(argv, prompt.encode("utf-8", "replace"), self.timeout)
        if len(out) > MAX_ANSWER_BYTES:
            raise LlmError(f"claude answered more than {MAX_ANSWER_BYTES:,} bytes")
        result = _result(out)
        text = result.get("result")
        if status == 0 and isinstance(text, str) and not result.get("is_error"):
            return text
        detail = text if isinstance(text, str) and text.strip() else (err or out).decode("utf-8", "replace")
        raise LlmError(f"claude failed (exit code {status}): {one_line(detail) or 'it said nothing'}")


def _result(out: bytes) -> dict[str, Any]:
    """Return the result object: all that is printed, or the last of a list when ``claude`` is verbose."""
    try:
        found = jsonlib.loads(out)
    except (ValueError, RecursionError):
        return {}
    events = found if isinstance(found, list) else [found]
    results = [event for event in events if isinstance(event, dict) and "result" in event]
    return results[-1] if results else {}


def _run(argv: Sequence[str], text: bytes, seconds: float) -> tuple[int, bytes, bytes]:
    """Run the command on the text; return its exit code and output, or raise LlmError after ``seconds``."""
    deadline = time.monotonic() + seconds
    env = {name: value for name, value in os.environ.items() if name not in _NESTING}
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
            raise LlmError(f"claude did not answer within {seconds:g} s; {MORE_TIME}") from None
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
