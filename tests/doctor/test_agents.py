"""Checks of the ways in: agents that are connected, the hook and the server."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from castle import Castle, config
from castle.clients.connect import connect
from castle.clients.servers import Server
from castle.clients.table import client, places
from castle.doctor import Context, agents
from tests.doctor.conftest import looked

HOOK = Path(sys.executable).with_name("castle-hook")


def connected(home: Path, program: str = str(HOOK)) -> None:
    connect(client("claude"), Server("castle-mcp"), places(home, {}), hook_program=shlex.quote(program))


def test_nothing_is_connected(castle: Castle, own_home: Path) -> None:
    found = looked(castle, agents.clients)
    assert found.status == "not checked"
    assert "castle connect" in found.help


def test_what_is_connected(castle: Castle, own_home: Path) -> None:
    connected(own_home)
    found = looked(castle, agents.clients)
    assert found.status == "ok"
    assert "claude: server, " in found.detail


def test_hooks_that_are_switched_off_or_missing(castle: Castle, own_home: Path) -> None:
    connected(own_home)
    file = own_home / ".claude" / "settings.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**settings, "disableAllHooks": True}), encoding="utf-8")
    found = looked(castle, agents.clients)
    assert found.status == "failed"
    assert "disableAllHooks" in found.detail
    del settings["hooks"]["Stop"]
    file.write_text(json.dumps(settings), encoding="utf-8")
    assert "Stop" in looked(castle, agents.clients).detail


def test_hooks_that_codex_does_not_trust(castle: Castle, own_home: Path) -> None:
    where = places(own_home, {})
    connect(client("codex"), Server("castle-mcp"), where, hook_program=shlex.quote(str(HOOK)))
    found = looked(castle, agents.clients)
    assert (found.status, found.help) == ("failed", "type /hooks in Codex and trust them")


def test_recall(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(castle, agents.recall).detail == "not in use: hooks.recall is off; no server answers"
    config.set_user("hooks.recall", True, home=castle.settings.home)
    settings = config.load({"palace_path": str(castle.root)}, home=castle.settings.home)
    on = Context(settings, castle._palace)
    found = agents.recall(on)
    assert (found.status, found.help[:12]) == ("not checked", "castle serve")
    assert "no server answers at " in found.detail
    monkeypatch.setattr("castle.local.ask", lambda *_: {"text": ""})
    found = agents.recall(on)
    assert found.status == "ok"
    assert found.detail.startswith("hooks.recall is on; a server answers after ")
    monkeypatch.setattr(agents, "RECALL_SECONDS", -1.0)
    assert agents.recall(on).status == "failed"


def test_a_hook_that_is_gone(castle: Castle, own_home: Path, tmp_path: Path) -> None:
    connected(own_home, str(tmp_path / "venv" / "castle-hook"))
    found = looked(castle, agents.clients)
    assert found.status == "failed"
    assert "venv/castle-hook" in found.detail


def test_the_hook_runs(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "HOOK_SECONDS", 60.0)
    before = sorted(castle.root.rglob("*"))
    found = looked(castle, agents.hook)
    assert found.status == "ok", found
    assert "ms" in found.detail
    assert sorted(castle.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 2", "exit code 2"),
        ("echo hello", "bytes on stdout"),
        ("echo it went wrong >&2", "it went wrong"),
        ("exit 0", "noted nothing"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_connected_hook_that_does_not_work(
    castle: Castle, own_home: Path, tmp_path: Path, script: str, told: str
) -> None:
    program = tmp_path / "castle-hook"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    connected(own_home, str(program))
    found = looked(castle, agents.hook)
    assert found.status == "failed"
    assert told in found.detail


def test_a_hook_that_is_slow(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "HOOK_SECONDS", 0.0)
    assert "took" in looked(castle, agents.hook).detail


def test_the_server_shakes_hands(castle: Castle) -> None:
    found = looked(castle, agents.server)
    assert found.status == "ok", found
    assert "ms" in found.detail


def test_a_server_that_does_not_start(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "_own", lambda *_: [sys.executable, "-c", "raise SystemExit(1)"])
    found = looked(castle, agents.server)
    assert found.status == "failed"
    assert "initialize" in found.detail
    monkeypatch.setattr(agents, "_own", lambda *_: ["/nowhere/castle-mcp"])
    assert looked(castle, agents.server).status == "failed"
