"""Many servers and command lines on one palace, and one server that is asked for a long time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from castle import Castle
from tests.mcp.conftest import Wire

Start = Callable[..., Wire]
Filed = list[tuple[str, str]]
"""Ids of drawers that were said to be filed, with the words that were given."""

CALLS = 4
RUNS = 2


def by_server(server: Wire, number: int) -> Filed:
    """File notes, facts and entries through one server; each is filed when it says so."""
    server.initialize()
    filed: Filed = []

    def call(tool: str, **arguments: object) -> dict[str, object]:
        answer = server.request("tools/call", name=tool, arguments=arguments)
        assert "error" not in answer, answer
        assert not answer["result"].get("isError"), answer["result"]["content"]
        content: dict[str, object] = answer["result"]["structuredContent"]
        return content

    for turn in range(CALLS):
        words = f"Note {turn} of server {number}: the ferry leaves from pier {turn}-{number}."
        filed.append(
            (str(call("castle_add_drawer", wing="harbour", room="notes", content=words)["drawer_id"]), words)
        )
        call("castle_kg_add", subject=f"ferry {number}", predicate="uses", object=f"pier {turn}")
        words = f"Entry {turn} of server {number}."
        entry = call("castle_diary_write", agent_name=f"agent{number}", entry=words)
        filed.append((str(entry["drawer_id"]), words))
        found = call("castle_search", query=f"pier {turn}-{number}")
        assert found["total"]
    return filed


def by_command_line(palace: Path, number: int) -> Filed:
    filed: Filed = []

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "castle", "--palace", str(palace), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONDEVMODE": ""},
        )
        assert done.returncode == 0, done.stderr
        assert "locked" not in done.stderr
        return done.stdout

    for turn in range(RUNS):
        words = f"Note {turn} of command line {number}: berth {turn}-{number} is free."
        added = json.loads(run("add", words, "--wing", "harbour", "--room", "berths", "--json"))
        filed.append((added["id"], words))
        run("kg", "add", f"berth {number}", "uses", f"rope {turn}")
    return filed


@pytest.mark.slow
def test_four_servers_and_four_command_lines_write_at_once(wire: Start, tmp_path: Path) -> None:
    palace = tmp_path / "palace"
    with Castle(palace, embedder="fake") as castle:
        castle.diary_write("nobody", "The beginning.")
    servers = [wire("--palace", str(palace), "--tools", "all") for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        work = [pool.submit(by_server, server, number) for number, server in enumerate(servers)]
        work += [pool.submit(by_command_line, palace, number) for number in range(4)]
        filed = [one for each in work for one in each.result()]
    for server in servers:
        code, out, err = server.ended()
        assert (code, out, err) == (0, b"", b"")
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.lines)
        assert not any(b"locked" in line for line in server.lines)
    assert len(filed) == len({id_ for id_, _ in filed}) == 4 * 2 * CALLS + 4 * RUNS
    with Castle(palace) as castle:
        for id_, words in filed:
            assert words in castle.get(id_)[0].text
        for number in range(4):
            assert castle.kg.query(f"ferry {number}").total == CALLS
            assert castle.kg.query(f"berth {number}").total == RUNS
        assert castle.list_drawers(wing="harbour", limit=100).total == 4 * (CALLS + RUNS)
        assert [f.detail for f in castle.repair() if f.status != "ok"] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("end", ["input", "SIGTERM", "SIGKILL"])
def test_an_end_in_the_middle_of_a_write_leaves_all_or_nothing(wire: Start, tmp_path: Path, end: str) -> None:
    palace = tmp_path / "palace"
    with Castle(palace, embedder="fake") as castle:
        castle.diary_write("nobody", "The beginning.")
    text = "".join(f"Line {n} of a long note about the ferry.\n" for n in range(20_000))
    server = wire("--palace", str(palace))
    server.initialize()
    server.request("tools/call", name="castle_list_wings", arguments={})
    server.send("tools/call", name="castle_add_drawer", arguments={"wing": "w", "room": "r", "content": text})
    if end == "SIGTERM":
        server.process.terminate()
    elif end == "SIGKILL":
        server.process.kill()
    code, _, err = server.ended()
    assert code == (-9 if end == "SIGKILL" else 0)
    assert b"Traceback" not in err
    with Castle(palace) as castle:
        kept = [drawer for drawer in castle.list_drawers(wing="w", limit=10_000).drawers]
        assert "".join(drawer.text for drawer in kept) in ("", text)
        assert [f.detail for f in castle.repair() if f.status != "ok"] == []


def resident(server: Wire) -> int:
    """Return the kilobytes of memory that a server has."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_three_hundred_calls_do_not_add_up(wire: Start, root: Path) -> None:
    server = wire("--palace", str(root), "--tools", "all")
    server.initialize()

    def ask(turn: int) -> None:
        if turn % 3 == 0:
            assert server.request("tools/list")["result"]["tools"]
            return
        tools: list[tuple[str, dict[str, object]]] = [
            ("castle_search", {"query": f"GraphQL in month {turn}"}),
            ("castle_kg_query", {"entity": "shop"}),
            ("castle_status", {}),
            ("castle_list_drawers", {}),
            ("castle_add_drawer", {"wing": "w", "room": "r", "content": f"Note {turn}."}),
        ]
        name, arguments = tools[turn % len(tools)]
        answer = server.request("tools/call", name=name, arguments=arguments)
        assert not answer["result"].get("isError"), answer

    def degraded() -> bool:
        answer = server.request("tools/call", name="castle_search", arguments={"query": "GraphQL"})
        return bool(answer["result"]["structuredContent"].get("degraded"))

    while degraded():
        time.sleep(0.1)  # the models are being loaded
    for turn in range(100):
        ask(turn)
    before = resident(server)
    for turn in range(100, 300):
        ask(turn)
    assert resident(server) - before < 30_000
    assert server.ended()[0] == 0
