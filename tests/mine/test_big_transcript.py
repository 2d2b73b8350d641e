"""A transcript of 300 MB with a line of 20 MB: bounded memory, interrupted, resumed, complete."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from castle import Castle

CASTLE = str(Path(sys.executable).with_name("castle"))
MB = 1_000_000
WORDS = (
    "harbour ship berth cargo storm crane captain rope anchor tide light pilot quay fog signal deck "
    "waits leaves arrives loads reports closes opens turns under over before after the a of and to in"
).split()


@dataclass
class Transcript:
    """Writes records as Claude Code does and counts what ought to be filed."""

    file: IO[str]
    random: random.Random = field(default_factory=lambda: random.Random(7))
    bytes: int = 0
    messages: int = 0
    longest_line: int = 0
    longest_text: str = ""
    last: str = ""

    def record(self, role: str, content: object, **more: object) -> str:
        id_ = f"u{self.messages}"
        said = {"role": role, "content": content}
        about = {"sessionId": "big", "cwd": "/nowhere/harbour", "timestamp": "2026-05-01T10:00:00.000Z"}
        self.line({"type": role, "uuid": id_, "parentUuid": self.last, **about, "message": said, **more})
        self.messages += 1
        self.last = id_
        return id_

    def line(self, value: object) -> None:
        text = json.dumps(value) + "\n"
        self.file.write(text)
        self.bytes += len(text)
        self.longest_line = max(self.longest_line, len(text))

    def prose(self, size: int) -> str:
        lines: list[str] = []
        length = 0
        while length < size:
            lines.append(f"{self.messages}.{len(lines)} {' '.join(self.random.choices(WORDS, k=18))}")
            length += len(lines[-1]) + 1
        return "\n".join(lines)

    def exchange(self, size: int) -> None:
        """A question, a call, its output (which the host repeats for its display), and an answer."""
        self.record("user", f"question {self.messages}: what about the harbour?")
        call = {"type": "tool_use", "id": f"t{self.messages}", "name": "Bash", "input": {"n": self.messages}}
        self.record("assistant", [call])
        output = self.prose(size)
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
        self.record("user", [result], toolUseResult={"stdout": output})
        self.record("assistant", f"answer {self.messages}: it is closed")

    def picture(self, size: int) -> None:
        data = base64.b64encode(self.random.randbytes(size * 3 // 4)).decode("ascii")
        source = {"type": "base64", "media_type": "image/png", "data": data}
        text = {"type": "text", "text": f"picture {self.messages} of the harbour"}
        self.record("user", [text, {"type": "image", "source": source}])

    def snapshot(self, size: int) -> None:
        self.line(
            {"type": "file-history-snapshot", "snapshot": {"files": "x" * size}, "messageId": self.last}
        )

    def long_line(self, size: int) -> str:
        self.longest_text = self.prose(size)
        result = {"type": "tool_result", "tool_use_id": "long", "content": self.longest_text}
        return self.record("user", [result])


def run(palace: Path, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "CASTLE_EMBEDDER_MODEL": "fake"}
    with log.open("ab") as errors:
        command = [CASTLE, "--palace", str(palace), *arguments]
        # Where the tests run in the background, SIGINT is ignored, and children inherit that.
        return subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=_heed_interrupts
        )


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for a process; return its exit code and the most memory it held, in MB.

    The kernel's count for a process that has ended begins with the memory of the one that started it.
    """
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))
        peak = max(peak, int(found[1])) if found else peak
        time.sleep(0.02)
    return process.returncode, peak * 1024 / MB


def filed(palace: Path) -> int:
    """Count the messages in the ledger, from outside."""
    if not (palace / "castle.db").exists():
        return 0
    with closing(sqlite3.connect(palace / "castle.db", timeout=30)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a child is read in /proc")
def test_a_big_transcript_is_filed_in_bounded_memory(tmp_path: Path) -> None:
    path, palace, log = tmp_path / "big.jsonl", tmp_path / "palace", tmp_path / "log"
    with path.open("w", encoding="utf-8") as file:
        made = Transcript(file)
        for number in range(40):
            made.exchange(1 * MB)
            made.picture(3 * MB)
            if number % 5 == 0:
                made.snapshot(10 * MB)
            if number == 25:
                long_id = made.long_line(20 * MB)
    assert made.bytes > 300 * MB
    assert made.longest_line > 20 * MB

    process = run(palace, log, "mine", str(path), "--mode", "convos")
    while filed(palace) < made.messages // 4 and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    code, first_peak = ended(process)
    assert code == 130, log.read_text(encoding="utf-8")
    assert 0 < filed(palace) < made.messages

    code, second_peak = ended(run(palace, log, "mine", str(path), "--mode", "convos"))
    assert code == 0, log.read_text(encoding="utf-8")
    assert filed(palace) == made.messages
    code, verify_peak = ended(run(palace, log, "verify"))
    assert code == 0, log.read_text(encoding="utf-8")
    assert max(first_peak, second_peak, verify_peak) < 1000, (first_peak, second_peak, verify_peak)

    with Castle(palace) as castle:
        (session,) = castle.sessions().sessions
        assert session.messages == made.messages
        found = castle.get_message(long_id)
        assert "".join(part.text for part in found) == made.longest_text
        report = castle.mine(path, mode="convos")
        assert report.drawers_new == 0
