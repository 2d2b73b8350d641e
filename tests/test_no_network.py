"""The main path with sockets forbidden: filing, embedding with the real model, searching, verifying."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mine.conftest import FILES, write

BANNED = """
import socket, sys

# A search asks whether a language model runs on this machine, by number, not by name.
own = [("socket.connect", ("127.0.0.1", 11434)), ("socket.getaddrinfo", "127.0.0.1")]

def forbid(event, arguments):
    if event not in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        return
    if (event, arguments[1 if event == "socket.connect" else 0]) not in own:
        raise SystemExit(f"network: {event} {arguments}")

sys.addaudithook(forbid)
from castle.cli import main
main(sys.argv[1:])
"""


def without_network() -> list[str]:
    """Return the prefix that takes every interface away from a command, native code included."""
    if shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0:
        return ["unshare", "-rn"]
    return []


def test_filing_and_searching_open_no_connection(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CASTLE_LLM_ENDPOINT")
    project = tmp_path / "garden-shop"
    project.mkdir()
    write(project, FILES)
    command = [*without_network(), sys.executable, "-c", BANNED, "--palace", str(tmp_path / "palace")]
    for arguments in (
        ["init", str(project), "--yes"],
        ["search", "which query language did we pick"],
        ["verify"],
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if arguments[0] == "search":
            assert "GraphQL" in done.stdout.split("\n\n")[1]
    assert list(own_home.rglob("*")) == [], "a library keeps data about its use"


def test_the_ban_would_be_noticed(tmp_path: Path) -> None:
    code = BANNED.replace("main(sys.argv[1:])", "socket.create_connection(('127.0.0.1', 9))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "network: " in done.stderr
