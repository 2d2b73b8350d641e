from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from castle.hooks.start import take
from tests.cli.conftest import Run
from tests.hooks.conftest import payload
from tests.mine.test_convos import talk


@pytest.fixture
def noted(own_home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A palace in which a hook has noted a transcript, and no drainer was started for it."""
    root = own_home / ".castle" / "palace"
    (root / "spool").mkdir(parents=True)
    held = take(str(root))
    assert held is not None
    transcript = own_home / "s1.jsonl"
    transcript.write_text("".join(talk(4)), encoding="utf-8")
    stdin = own_home / "stdin"
    stdin.write_text(json.dumps(payload("claude-code", "stop", str(transcript))), encoding="utf-8")
    saved = os.dup(0)
    descriptor = os.open(stdin, os.O_RDONLY)
    os.dup2(descriptor, 0)
    try:
        done = run("hook", "run", "--hook", "stop", "--harness", "claude-code")
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(descriptor)
        os.close(held)
    assert (done.code, done.out, done.err) == (0, "", "")
    return transcript


def test_sweep_without_a_path_files_what_hooks_noted(run: Run, noted: Path) -> None:
    done = run("sweep")
    assert done.code == 0
    assert done.out.splitlines() == [
        "1 hook event, 1 transcript named",
        "4 messages filed as 4 drawers",
    ]
    assert json.loads(run("sweep", "--json").out)["events"] == 0
    assert "hook events" not in run("status").out


def test_status_counts_what_waits_and_sweep_says_what_failed(run: Run, noted: Path) -> None:
    run("sweep", str(noted))
    noted.unlink()
    assert "waiting hook events: 1;" in run("status").out
    assert json.loads(run("status", "--json").out)["spool_events"] == 1
    done = run("sweep")
    assert done.code == 3
    assert "missing" in done.err
    assert "1 event kept" in done.err


def test_sweep_takes_a_wing_only_with_a_path(run: Run) -> None:
    assert run("sweep", "--wing", "x").code == 2


def test_a_hook_with_wrong_words_exits_with_0(run: Run, own_home: Path) -> None:
    (own_home / ".castle" / "palace").mkdir(parents=True)
    assert run("hook", "run", "--hook", "nothing").code == 0
    assert run("hook", "run").code == 0
    assert not (own_home / ".castle" / "palace" / "spool").exists()


@pytest.mark.parametrize("client", ["claude-code", "codex", "json"])
def test_mcp_prints_how_to_set_a_client_up(run: Run, client: str, own_home: Path) -> None:
    plain = run("mcp", "--client", client)
    assert plain.code == 0
    assert "castle-mcp" in plain.out
    assert "--palace" not in plain.out
    named = run("--palace", str(own_home / 'a "b" c'), "mcp", "--client", client)
    if client == "json":
        assert json.loads(named.out)["mcpServers"]["castle"]["args"] == [
            "--palace",
            str(own_home / 'a "b" c'),
        ]
    if client == "codex":
        import tomllib

        server = tomllib.loads(named.out)["mcp_servers"]["castle"]
        assert server["args"] == ["--palace", str(own_home / 'a "b" c')]
    if client == "claude-code":
        import shlex

        assert shlex.split(named.out)[-2:] == ["--palace", str(own_home / 'a "b" c')]


def test_mcp_lists_its_tools(run: Run) -> None:
    listed = json.loads(run("mcp", "--list-tools", "--json").out)
    assert "castle_search" in {tool["name"] for tool in listed}
    assert "castle_search" in run("mcp", "--list-tools").out
    assert run("mcp", "--client", "emacs").code == 2
