"""Payloads as the hosts document them, and a transcript for them to name.

Claude Code: https://code.claude.com/docs/en/hooks; Codex: https://developers.openai.com/codex/hooks and the
schemas in codex-rs/hooks of openai/codex. Both as of October 2026.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from castle.hooks.start import take

SESSION = "4f0c1a2b-7d3e-4c55-9a68-2f1e0d9c8b7a"
SECRET = "words of somebody"

CLAUDE_CODE: Mapping[str, Mapping[str, object]] = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup", "model": "claude-opus-4-6"},
    "user-prompt-submit": {"hook_event_name": "UserPromptSubmit", "prompt": SECRET},
    "stop": {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": SECRET},
    "precompact": {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": ""},
    "session-end": {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
    "post-tool-use": {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": SECRET},
        "tool_response": {"stdout": SECRET},
        "tool_use_id": "toolu_1",
    },
    "subagent-stop": {
        "hook_event_name": "SubagentStop",
        "stop_hook_active": False,
        "agent_id": "a2018e5",
        "agent_type": "Explore",
        "agent_transcript_path": "/t/session/subagents/agent-a2018e5.jsonl",
        "last_assistant_message": SECRET,
    },
}
CODEX: Mapping[str, Mapping[str, object]] = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
    "user-prompt-submit": {"hook_event_name": "UserPromptSubmit", "turn_id": "t1", "prompt": SECRET},
    "stop": {
        "hook_event_name": "Stop",
        "turn_id": "t1",
        "stop_hook_active": False,
        "last_assistant_message": SECRET,
    },
    "precompact": {"hook_event_name": "PreCompact", "turn_id": "t1", "trigger": "manual"},
    "session-end": {"hook_event_name": "SessionEnd", "reason": "other"},
    "post-tool-use": {
        "hook_event_name": "PostToolUse",
        "turn_id": "t1",
        "tool_name": "shell",
        "tool_input": {"command": [SECRET]},
        "tool_response": SECRET,
        "tool_use_id": "call_1",
    },
    "subagent-stop": {
        "hook_event_name": "SubagentStop",
        "turn_id": "t1",
        "stop_hook_active": False,
        "agent_id": "019e1695-0522-7c83-8b39-0dd379793f80",
        "agent_type": "worker",
        "agent_transcript_path": None,
        "last_assistant_message": SECRET,
    },
}


def payload(harness: str, hook: str, transcript: str, **more: object) -> dict[str, object]:
    """What a host sends for an event."""
    own = (CLAUDE_CODE if harness == "claude-code" else CODEX)[hook]
    common: dict[str, object] = {"session_id": SESSION, "transcript_path": transcript, "cwd": "/nowhere/shop"}
    if harness == "codex" and hook != "session-end":
        common["model"] = "gpt-5"
    if hook != "precompact" and (harness, hook) != ("codex", "session-end"):
        common["permission_mode"] = "default"
    return {**common, **own, **more}


def events(palace: Path) -> list[dict[str, Any]]:
    """The events in a palace's spool."""
    file = palace / "spool" / "events.jsonl"
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def hook(palace: Path, data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a host does."""
    command = [sys.executable, "-m", "castle.hooks", "--palace", str(palace), *arguments]
    return subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A palace's directory in which no drainer is started: its lock is taken."""
    root = tmp_path / "palace"
    (root / "spool").mkdir(parents=True, mode=0o700)
    root.chmod(0o700)
    held = take(str(root))
    assert held is not None
    yield root
    os.close(held)


@pytest.fixture
def note(place: Path) -> Callable[..., bool]:
    """Run a hook in this process."""
    from castle.hooks import run

    def call(data: bytes | dict[str, object], hook: str = "stop", harness: str = "claude-code") -> bool:
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        path = place.parent / "stdin"
        path.write_bytes(raw)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return run(hook, harness, str(place), descriptor=descriptor)
        finally:
            os.close(descriptor)

    return call
