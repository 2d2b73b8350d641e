from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from castle.mcp import TIERS
from castle.mcp.server import build, described
from castle.mcp.tools import Tools, base
from tests.mcp.conftest import Wire

Start = Callable[..., Wire]

NOISY = """
import os, sys
from castle import Castle

class Noise:
    def find_spec(self, name, path=None, target=None):
        if name == "castle.mcp.tools":
            print("printed while importing")
            os.write(1, b"written while importing\\n")

sys.meta_path.insert(0, Noise())
search, add, load_models = Castle.search, Castle.add, Castle.load_models

def noisy_writer(self, *arguments, **more):
    print("printed by a tool that writes", flush=True)
    return add(self, *arguments, **more)

def noisy_thread(self):
    print("printed beside the tools", flush=True)
    os.write(1, b"written beside the tools\\n")
    load_models(self)

def noisy(self, *arguments, **more):
    print("printed by a tool")
    os.write(1, b"written by a tool\\n")
    os.system("echo echoed by a child")
    return search(self, *arguments, **more)

Castle.search, Castle.add, Castle.load_models = noisy, noisy_writer, noisy_thread
from castle.mcp import main
main(sys.argv[1:])
"""

STANDARD = [f"castle_{method.__name__}" for method, _ in Tools().all("standard")]


def listed(server: Wire) -> list[str]:
    """Return the names of the tools that a server offers."""
    return [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]


def test_the_official_client_speaks_with_a_real_process(root: Path) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "castle.mcp", "--palace", str(root)])

    async def ask() -> tuple[str | None, list[str], str]:
        async with Client(stdio_client(server)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("castle_search", {"query": "GraphQL May"})
            return client.instructions, tools, str(found.structured_content)

    instructions, tools, text = anyio.run(ask)
    assert instructions == build().instructions
    assert tools == STANDARD
    assert "We chose GraphQL in May." in text


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_every_protocol_version_of_the_handshake_is_taken(wire: Start, tmp_path: Path, version: str) -> None:
    server = wire("--palace", str(tmp_path / "nowhere"))
    answer = server.request(
        "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"}
    )
    assert answer["result"]["protocolVersion"] == version


def test_the_handshake_opens_and_makes_nothing(wire: Start, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from castle.mcp import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    heavy = {'castle.service', 'sqlalchemy', 'lancedb', 'numpy', 'onnxruntime', 'tantivy'}\n"
        "    sys.stderr.write(f'heavy: {sorted(heavy & set(sys.modules))}')\n"
    )
    server = wire("--palace", str(tmp_path / "nowhere"), code=code)
    assert server.initialize()["result"]["serverInfo"]["name"] == "cognitive-castle"
    assert listed(server) == STANDARD
    code_, out, err = server.ended()
    assert (code_, out) == (0, b"")
    assert err.endswith(b"heavy: []")
    assert not (tmp_path / "nowhere").exists()


def test_nothing_but_the_protocol_is_on_stdout(wire: Start, root: Path) -> None:
    server = wire("--palace", str(root), code=NOISY)
    server.initialize()
    for _ in range(3):
        answer = server.request("tools/call", name="castle_search", arguments={"query": "GraphQL"})
        assert answer["result"]["structuredContent"]["hits"]
    note = {"wing": "shop", "room": "notes", "content": "A lantern."}
    answer = server.request("tools/call", name="castle_add_drawer", arguments=note)
    assert answer["result"]["structuredContent"]["success"]
    code, out, err = server.ended()
    assert code == 0
    for line in [*server.lines, *out.splitlines()]:
        assert json.loads(line)["jsonrpc"] == "2.0"
    for words in (
        b"while importing",
        b"printed by a tool",
        b"written by a tool",
        b"echoed by a child",
        b"printed by a tool that writes",
        b"printed beside the tools",
        b"written beside the tools",
    ):
        assert words in err


def test_an_unknown_parameter_is_the_protocols_error(wire: Start, root: Path) -> None:
    server = wire("--palace", str(root))
    server.initialize()
    answer = server.request("tools/call", name="castle_search", arguments={"query": "x", "n_results": 3})
    assert answer["error"]["code"] == -32602
    assert "did you mean limit?" in answer["error"]["message"]
    assert "result" in server.request("tools/list")


def test_a_missing_palace_is_an_error_of_the_tool(
    wire: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASTLE_PALACE_PATH", str(tmp_path / "nowhere"))
    server = wire()
    server.initialize()
    answer = server.request("tools/call", name="castle_status", arguments={})
    assert answer["result"]["isError"]
    assert str(tmp_path / "nowhere") in answer["result"]["content"][0]["text"]
    assert server.ended()[0] == 0


def test_a_broken_settings_file_is_an_error_of_the_tool(wire: Start, own_home: Path) -> None:
    (own_home / ".castle").mkdir()
    (own_home / ".castle" / "castle.yaml").write_text("limits: [", encoding="utf-8")
    server = wire()
    server.initialize()
    answer = server.request("tools/call", name="castle_status", arguments={})
    assert answer["result"]["isError"]
    assert "castle.yaml" in answer["result"]["content"][0]["text"]


def test_lines_that_are_no_message_end_nothing(wire: Start, tmp_path: Path) -> None:
    server = wire("--palace", str(tmp_path))
    server.initialize()
    assert server.process.stdin is not None
    server.process.stdin.write(b"\xff\xfe nonsense\n{}\n[]\n\n")
    server.process.stdin.flush()
    assert listed(server) == STANDARD


@pytest.mark.parametrize("asked", [False, True])
def test_the_end_of_input_is_the_end(wire: Start, root: Path, asked: bool) -> None:
    server = wire("--palace", str(root))
    server.initialize()
    if asked:
        server.request("tools/call", name="castle_list_wings", arguments={})
    code, out, err = server.ended()
    assert (code, out) == (0, b"")
    assert b"Traceback" not in err


def test_end_of_input_before_the_handshake_is_an_end_too(wire: Start, tmp_path: Path) -> None:
    code, out, err = wire("--palace", str(tmp_path)).ended()
    assert (code, out) == (0, b"")
    assert b"Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_end_it_cleanly(wire: Start, root: Path, number: signal.Signals, expected: int) -> None:
    server = wire("--palace", str(root))
    server.initialize()
    server.request("tools/call", name="castle_list_wings", arguments={})
    server.process.send_signal(number)
    assert server.process.wait(timeout=30) == expected
    assert server.process.stderr is not None
    assert b"Traceback" not in server.process.stderr.read()


def test_a_client_that_is_gone_is_no_accident(wire: Start, tmp_path: Path) -> None:
    server = wire("--palace", str(tmp_path))
    server.initialize()
    assert server.process.stdout is not None
    server.process.stdout.close()
    server.send("tools/list")
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(timeout=30) == 0
    assert server.process.stderr is not None
    assert b"Traceback" not in server.process.stderr.read()


def test_two_servers_answer_from_one_palace(wire: Start, root: Path) -> None:
    servers = [wire("--palace", str(root)) for _ in range(2)]
    for server in servers:
        server.initialize()
    for _ in range(3):
        for server in servers:
            answer = server.request("tools/call", name="castle_search", arguments={"query": "GraphQL"})
            assert not answer["result"].get("isError"), answer
            assert answer["result"]["structuredContent"]["total"] > 0


@pytest.mark.parametrize("tier", ["core", "memory", "all"])
def test_a_set_of_tools_can_be_chosen(
    wire: Start, tmp_path: Path, tier: Literal["core", "memory", "all"]
) -> None:
    server = wire("--palace", str(tmp_path), "--tools", tier)
    server.initialize()
    assert listed(server) == [tool.name for tool in described(Tools(), tier)]


def test_sets_grow() -> None:
    assert TIERS == base.TIERS
    sizes = [len(Tools().all(tier)) for tier in base.TIERS]
    assert sizes == sorted(set(sizes))


def test_wrong_options_are_refused_and_help_is_given() -> None:
    command = [sys.executable, "-m", "castle.mcp"]
    for wrong in (["--port", "1"], ["--tools", "few"], ["--tools"]):
        done = subprocess.run([*command, *wrong], capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.count(b"\n") == 1 and wrong[0].encode() in done.stderr
    assert b"standard" in subprocess.run([*command, "--help"], capture_output=True, check=True).stdout
    assert b"--palace" in subprocess.run([*command, "--help"], capture_output=True, check=True).stdout
