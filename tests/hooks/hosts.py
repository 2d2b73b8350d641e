"""Hosts played back: a recorded transcript grows, and the hooks of each moment are called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castle.hooks.start import take
from castle.store import spool
from tests.hooks.conftest import payload

PROGRAM = Path(sys.executable).with_name("castle-hook")
PATIENCE = 120.0


def call(harness: str, hook: str, data: dict[str, object]) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a host does, in the directory in which the host runs."""
    command = [str(PROGRAM), "--hook", hook, "--harness", harness]
    raw = json.dumps(data).encode()
    return subprocess.run(command, input=raw, capture_output=True, check=False, timeout=60)


def wait_for_drainer(root: Path) -> None:
    """Wait until no drainer runs, and see that the one there was left nothing to do."""
    wait_for_end(root)
    assert not spool.pending(root), log(root)


def wait_for_end(root: Path) -> None:
    """Wait until no drainer runs."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        held = take(str(root))
        if held is not None:
            os.close(held)
            return
        time.sleep(0.05)
    raise AssertionError(f"the drainer did not end: {log(root)}")


def log(root: Path) -> str:
    """What the drainers of a palace have written."""
    file = root / "spool" / "drain.log"
    return file.read_text(encoding="utf-8") if file.exists() else ""


@dataclass
class Replay:
    """One session of a host; ``said`` is what its hooks printed, by hook."""

    harness: str
    source: Path
    target: Path
    session: str
    cwd: str
    said: dict[str, list[bytes]] = field(default_factory=dict)

    def run(self) -> None:
        """Play the whole session."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.hook("session-start")
        lines = self.source.read_bytes().splitlines(keepends=True)
        turns = list(self._turns(lines))
        for number, turn in enumerate(turns):
            self.hook("user-prompt-submit")
            for line in turn:
                with self.target.open("ab") as file:
                    file.write(line)
                if self._is_tool_result(json.loads(line)):
                    self.hook("post-tool-use")
            self._subagents()
            self.hook("stop")
            if number == len(turns) // 2:
                self.hook("precompact")
        self.hook("session-end")

    def hook(self, name: str) -> None:
        """Call one hook with the documented payload."""
        data = payload(self.harness, name, str(self.target), session_id=self.session, cwd=self.cwd)
        done = call(self.harness, name, data)
        assert (done.returncode, done.stderr) == (0, b"")
        if done.stdout:
            self.said.setdefault(name, []).append(done.stdout)

    def _turns(self, lines: Sequence[bytes]) -> Iterator[list[bytes]]:
        """Cut the records before each prompt; what stands before the first belongs to it."""
        turn: list[bytes] = []
        asked = False
        for line in lines:
            if self._is_prompt(json.loads(line)):
                if asked:
                    yield turn
                    turn = []
                asked = True
            turn.append(line)
        yield turn

    def _is_prompt(self, record: dict[str, Any]) -> bool:
        if self.harness == "codex":
            return bool(record["payload"].get("type") == "user_message")
        return record["type"] == "user" and isinstance(record["message"]["content"], str)

    def _is_tool_result(self, record: dict[str, Any]) -> bool:
        if self.harness == "codex":
            return bool(record["payload"].get("type") == "function_call_output")
        content = record.get("message", {}).get("content")
        return record["type"] == "user" and isinstance(content, list) and content[0]["type"] == "tool_result"

    def _subagents(self) -> None:
        """Put the transcripts of subagents where the host keeps them."""
        folder = self.source.with_suffix("") / "subagents"
        if folder.is_dir() and not self.target.with_suffix("").exists():
            shutil.copytree(folder, self.target.with_suffix("") / "subagents")
            self.hook("subagent-stop")
