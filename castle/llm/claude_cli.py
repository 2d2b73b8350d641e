"""Models through the ``claude`` command, which brings its own login."""

from __future__ import annotations

import json as jsonlib
import shutil
from dataclasses import dataclass
from typing import Any

from castle.llm.base import JSON_ONLY, MAX_ANSWER_BYTES, TIMEOUT_S, LlmError, one_line
from castle.llm.process import run

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
        status, out, err = run(argv, prompt.encode("utf-8", "replace"), self.timeout, without=_NESTING)
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
