"""Two processes remember in one palace at the same time: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from castle import Castle

EACH = 12
WRITER = """
import sys
from castle import Castle
with Castle(sys.argv[1], embedder="fake") as castle:
    castle.defer_models()
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(int(sys.argv[3])):
        castle.memory_save(f"{sys.argv[2]} saw buoy number {n}", "episodic", {"session_id": sys.argv[2]})
        castle.memory_save("The ferry is late", "semantic", {"session_id": sys.argv[2], "confidence": 0.5})
        castle.memory_save(f"{sys.argv[2]} looks for {n}", "working", {"session_id": sys.argv[2]})
        assert castle.memory_recall(f"{sys.argv[2]} buoy {n}", {"top_k": 50}).memories
"""


def test_two_processes_save_and_recall_at_once(tmp_path: Path) -> None:
    root = tmp_path / "palace"
    with Castle(root, embedder="fake") as castle:
        castle.memory_save("the harbour is open")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), name, str(EACH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("ann", "bob")
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert (writer.returncode, err) == (0, "")
    with Castle(root) as castle:
        layers = castle.memory_status()["layers"]
        assert layers["episodic"]["entry_count"] == 2 * EACH + 1
        assert layers["semantic"]["entry_count"] == 1
        assert layers["working"]["entry_count"] == 2 * EACH
        (fact,) = castle.memory_recall("ferry late", {"memory_type": "semantic"}).memories
        # Two sessions, each of them one witness.
        assert round(fact.confidence, 3) == 0.55
