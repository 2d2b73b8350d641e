"""What an agent waits for: hooks, the start of the MCP server, its first search, and memory for many agents.

    python -m benchmarks.agents_bench [--palace DIR] [--runs N] [--agents N] [--out FILE]

Without ``--palace`` one is made of this repository's own text. Everything is measured from outside, on the
installed scripts, next to what the interpreter and the SDK take by themselves in the same run: ``python -c
pass`` for hooks, a server of the SDK without tools for the start. Memory is read in ``/proc`` (Linux);
proportional means that pages which several servers share are counted once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from castle import Castle, __version__

SCRIPTS = Path(sys.executable).parent
EVENTS = ("session-start", "user-prompt-submit", "stop", "precompact", "session-end")
QUESTIONS = (
    "what happens when a configuration file is broken",
    "who may make changes to a drawer",
    "how is a secret masked",
    "when is the cross-encoder skipped",
    "what is a tombstone",
)
BARE = "from mcp.server.mcpserver import MCPServer\nMCPServer('bare').run('stdio')\n"


@dataclass(frozen=True)
class Measure:
    """One line of the table: milliseconds over some runs, or megabytes with ``unit`` MB."""

    name: str
    runs: int
    median: float
    p95: float
    worst: float
    unit: str = "ms"


class Server:
    """An MCP server in a process of its own, spoken to line by line."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._next = 0

    def request(self, method: str, **params: object) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._next += 1
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._next:
                return answer
        raise SystemExit("the server ended without an answer")

    def initialize(self) -> None:
        """Shake hands."""
        who = {"name": "bench", "version": "1"}
        self.request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def search(self, query: str) -> dict[str, Any]:
        """Ask ``castle_search``; return the structured answer."""
        answer = self.request("tools/call", name="castle_search", arguments={"query": query})
        found: dict[str, Any] = answer["result"]["structuredContent"]
        return found

    def megabytes(self, proportional: bool = False) -> float:
        """Return the memory the process holds."""
        file, key = ("smaps_rollup", "Pss") if proportional else ("status", "VmRSS")
        text = Path(f"/proc/{self.process.pid}/{file}").read_text(encoding="utf-8")
        found = re.search(rf"^{key}:\s*(\d+) kB", text, re.MULTILINE)
        assert found is not None
        return int(found[1]) / 1000

    def close(self) -> None:
        """End it as a host does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def _write(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def hooks(palace: Path, runs: int, folder: Path) -> Iterator[Measure]:
    """Time each event beside an interpreter that does nothing."""
    transcript = folder / "bench.jsonl"
    transcript.write_text("", encoding="utf-8")
    payload = {"session_id": "bench", "transcript_path": str(transcript), "cwd": str(folder), "prompt": "x"}
    data = json.dumps(payload).encode()

    def run(command: Sequence[str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, input=data, stdout=subprocess.DEVNULL, check=True)

    yield timed("python -c pass", runs, run([sys.executable, "-c", "pass"]))
    for event in EVENTS:
        command = [str(SCRIPTS / "castle-hook"), "--hook", event, "--harness", "claude-code"]
        yield timed(f"hook {event}", runs, run([*command, "--palace", str(palace)]))


def starts(palace: Path, runs: int) -> Iterator[Measure]:
    """Time spawn to the answer of initialize, and of the SDK alone."""
    for name, command in (
        ("initialize, SDK alone", [sys.executable, "-c", BARE]),
        ("initialize, castle-mcp", [str(SCRIPTS / "castle-mcp"), "--palace", str(palace)]),
    ):
        took = []
        for _ in range(runs):
            begun = time.perf_counter()
            server = Server(command)
            server.initialize()
            took.append(1000 * (time.perf_counter() - begun))
            server.close()
        yield measure(name, took)


def searches(palace: Path, runs: int) -> Iterator[Measure]:
    """Time the first search of new servers, the wait until the model takes part, and searches after that."""
    first, ready, warm = [], [], []
    for _ in range(runs):
        with serving(palace) as server:
            begun = time.perf_counter()
            answer = server.search(QUESTIONS[0])
            first.append(1000 * (time.perf_counter() - begun))
            while answer.get("degraded") and time.perf_counter() - begun < 60:
                time.sleep(0.1)
                answer = server.search(QUESTIONS[0])
            ready.append(1000 * (time.perf_counter() - begun))
            for query in QUESTIONS:
                begun = time.perf_counter()
                server.search(query)
                warm.append(1000 * (time.perf_counter() - begun))
    yield measure("first search of a server", first)
    yield measure("until the model takes part", ready)
    yield measure("search of a warm server", warm)


def memory(palace: Path, agents: int) -> Iterator[Measure]:
    """Read the memory of one server and of several that have all searched, and time searches side by side."""
    for count in (1, agents):
        servers = [Server([str(SCRIPTS / "castle-mcp"), "--palace", str(palace)]) for _ in range(count)]
        try:
            for server in servers:
                server.initialize()
                while server.search(QUESTIONS[0]).get("degraded"):
                    time.sleep(0.1)
            for query in QUESTIONS:
                for server in servers:
                    server.search(query)
            total = sum(server.megabytes(proportional=True) for server in servers)
            yield measure(f"memory of each of {count}", [s.megabytes() for s in servers], "MB")
            yield measure(f"memory of all {count}, proportional", [total], "MB")
        finally:
            for server in servers:
                server.close()


@contextmanager
def serving(palace: Path) -> Iterator[Server]:
    """Run a server for the length of a block."""
    server = Server([str(SCRIPTS / "castle-mcp"), "--palace", str(palace)])
    try:
        server.initialize()
        yield server
    finally:
        server.close()


def timed(name: str, runs: int, action: Callable[[], object]) -> Measure:
    """Time an action."""
    took = []
    for _ in range(runs):
        begun = time.perf_counter()
        action()
        took.append(1000 * (time.perf_counter() - begun))
    return measure(name, took)


def measure(name: str, values: Sequence[float], unit: str = "ms") -> Measure:
    """Sum up some values."""
    p95 = statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
    return Measure(name, len(values), statistics.median(values), min(p95, max(values)), max(values), unit)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure everything and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--palace", type=Path)
    parser.add_argument("--runs", type=int, default=100, help="runs of each hook; a tenth of it for servers")
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/agents_bench"))
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CASTLE_HOME"] = str(folder / "home")
        palace = options.palace or folder / "palace"
        with Castle(palace) as castle:
            if options.palace is None:
                castle.mine_project(Path(__file__).parents[1] / "castle")
                castle.mine_project(Path(__file__).parents[1] / "docs")
            drawers = castle.status().drawers
        found: list[Measure] = []
        few = max(2, options.runs // 10)
        for part in (
            hooks(palace, options.runs, folder),
            starts(palace, few),
            searches(palace, few),
            memory(palace, options.agents),
        ):
            for one in part:
                found.append(one)
                print(json.dumps(asdict(one)), file=sys.stderr)
    command = f"python -m benchmarks.agents_bench {' '.join(sys.argv[1:] if argv is None else argv)}".strip()
    about = {
        "command": command,
        "drawers": drawers,
        "castle": __version__,
        "python": platform.python_version(),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = {"about": about, "results": [asdict(one) for one in found]}
    options.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    rows = [
        "| what | runs | median | p95 | worst | |",
        "|---|---:|---:|---:|---:|---|",
        *(
            f"| {m.name} | {m.runs} | {m.median:.0f} | {m.p95:.0f} | {m.worst:.0f} | {m.unit} |"
            for m in found
        ),
    ]
    head = f"# What an agent waits for\n\n`{command}`\n\n{drawers:,} drawers.\n\n"
    options.out.with_suffix(".md").write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
