"""Models through the ``codex`` command, which brings its own login."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from castle.llm.base import JSON_ONLY, MAX_ANSWER_BYTES, TIMEOUT_S, LlmError, one_line
from castle.llm.process import run

MODEL = "gpt-5.6-luna"

# What is asked about may hold instructions: nothing may be run, written, searched for or remembered, and the
# user's own hooks and servers have no part in it.
_OFF = (
    'model_reasoning_effort="low"',
    'approval_policy="never"',
    'web_search="disabled"',
    'history.persistence="none"',
    "mcp_servers={}",
    "notify=[]",
    "project_doc_max_bytes=0",
    "features.hooks=false",
    "features.memories=false",
    "features.shell_tool=false",
)


@dataclass(frozen=True, slots=True)
class CodexCli:
    """A model that ``codex exec`` asks."""

    model: str = MODEL
    timeout: float = TIMEOUT_S

    @property
    def name(self) -> str:
        """The provider's name."""
        return "codex"

    def available(self) -> str | None:
        """Return None when the command is on PATH, else the reason."""
        return None if shutil.which("codex") else "the command codex is not on PATH; install Codex"

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        """Return the model's answer; raises LlmError."""
        command = shutil.which("codex")
        if command is None:
            raise LlmError(self.available() or "")
        argv = [
            command, "exec", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only",
            "--model", self.model, *(part for option in _OFF for part in ("-c", option)), "-",
        ]  # fmt: skip
        text = "\n\n".join((system, *((JSON_ONLY,) if json else ()), prompt))
        status, out, err = run(argv, text.encode("utf-8", "replace"), self.timeout)
        if len(out) > MAX_ANSWER_BYTES:
            raise LlmError(f"codex answered more than {MAX_ANSWER_BYTES:,} bytes")
        answer = out.decode("utf-8", "replace").strip()
        if status or not answer:
            detail = one_line((err or out).decode("utf-8", "replace")) or "it said nothing"
            raise LlmError(f"codex failed (exit code {status}): {detail}")
        return answer
