from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from castle.clients.events import EVENTS
from castle.clients.table import CLIENTS
from tests.cli.conftest import Run
from tests.clients.conftest import HOST_VARIABLES, tree


@pytest.fixture(autouse=True)
def no_host_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_share_lists_the_clients_with_their_files(run: Run, own_home: Path) -> None:
    listed = json.loads(run("share", "--json").out)
    assert [row["client"] for row in listed] == [known.name for known in CLIENTS]
    assert str(own_home / ".codex" / "config.toml") in {row["file"] for row in listed}
    assert not any(row["mcp"] or row["hooks"] for row in listed)
    run("connect", "codex")
    table = run("share").out
    assert "not trusted in Codex yet" in table
    codex = next(row for row in json.loads(run("share", "--json").out) if row["client"] == "codex")
    assert codex["mcp"] and codex["hooks"] == [event.event for event in EVENTS["codex"]]


def test_share_prints_and_writes_nothing(run: Run, own_home: Path) -> None:
    for known in CLIENTS:
        for more in ((), ("--print-config",)):
            done = run("share", "--with", known.name, *more)
            assert done.code == 0
            assert "castle-mcp" in done.out
    assert json.loads(run("share", "--with", "vscode").out)["servers"]["castle"]["type"] == "stdio"
    assert run("share", "--with", "claude").out.startswith("claude mcp add castle --scope user -- ")
    assert json.loads(run("share", "--with", "cursor", "--json").out)["client"] == "cursor"
    assert tree(own_home) == {}


def test_share_writes_into_the_clients_file(run: Run, own_home: Path) -> None:
    palace = own_home / 'p "1"'
    done = run("--palace", str(palace), "share", "--with", "codex", "--write")
    file = own_home / ".codex" / "config.toml"
    assert done.out == f"MCP server: added to {file}\n"
    assert "restart Codex" in done.err
    written = tomllib.loads(file.read_text("utf-8"))["mcp_servers"]["castle"]
    assert written["args"] == ["--palace", str(palace)]
    again = run("share", "--with", "codex", "--write", "--palace", str(palace))
    assert (again.code, again.out) == (0, f"MCP server: as it should be in {file}\n")
    other = run("share", "--with", "codex", "--write")
    assert other.code == 1
    assert "--replace" in other.err
    replaced = json.loads(run("share", "--with", "codex", "--write", "--replace", "--json").out)
    assert replaced["changes"][0]["outcome"] == "replaced"
    assert "args" not in tomllib.loads(file.read_text("utf-8"))["mcp_servers"]["castle"]


def test_share_writes_where_it_is_told_and_keeps_a_copy(run: Run, tmp_path: Path) -> None:
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{ // mine\n}\n", "utf-8")
    done = run("share", "--with", "vscode", "--write", "--path", str(file))
    assert done.code == 0
    assert f"{file}.castle-backup" in done.err
    assert Path(f"{file}.castle-backup").read_text("utf-8") == "{ // mine\n}\n"
    assert file.read_text("utf-8").startswith('{ // mine\n  "servers": {\n    "castle": {')
    generic = tmp_path / "any.json"
    assert run("share", "--with", "generic", "--write", "--path", str(generic)).code == 0
    assert "castle" in json.loads(generic.read_text("utf-8"))["mcpServers"]


def test_share_refuses_a_file_that_does_not_parse(run: Run, own_home: Path) -> None:
    file = own_home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  "mcpServers": {\n', "utf-8")
    before = tree(own_home)
    done = run("share", "--with", "cursor", "--write")
    assert (done.code, done.out) == (2, "")
    assert f"{file}:3:1: " in done.err
    assert tree(own_home) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("share", "--write"),
        ("share", "--with", "emacs"),
        ("share", "--with", "codex", "--replace"),
        ("share", "--with", "codex", "--path", "x"),
        ("share", "--with", "codex", "--write", "--print-config"),
        ("share", "--with", "generic", "--write"),
        ("connect", "emacs"),
        ("connect", "generic"),
        ("connect", "cursor", "--no-mcp"),
        ("connect", "codex", "--no-mcp", "--no-hooks"),
        ("disconnect", "generic"),
        ("mcp", "--list-tools", "--tools", "few"),
    ],
)
def test_wrong_words_are_wrong_usage(run: Run, own_home: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.err
    assert tree(own_home) == {}


def test_a_palace_named_in_the_environment_is_pointed_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLE_PALACE_PATH", "/somewhere")
    assert "CASTLE_PALACE_PATH is set here" in run("share", "--with", "codex").err
    assert "CASTLE_PALACE_PATH" not in run("--palace", "/x", "share", "--with", "codex").err


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_connect_and_disconnect(run: Run, own_home: Path, agent: str) -> None:
    (own_home / ".castle").mkdir()
    done = run("connect", agent)
    assert done.code == 0
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["MCP server", "hooks"]
    assert "there is no palace at" in done.err
    assert ("/hooks" in done.err) is (agent == "codex")
    compiled = json.loads((own_home / ".castle" / "hooks.json").read_text("utf-8"))
    assert compiled["palace"] == str(own_home / ".castle" / "palace")
    once = tree(own_home)
    again = json.loads(run("connect", agent, "--json").out)
    assert {change["outcome"] for change in again["changes"]} == {"unchanged"}
    assert tree(own_home) == once
    assert run("disconnect", agent).code == 0
    assert sorted(tree(own_home)) == [".castle", ".castle/hooks.json"]
    gone = json.loads(run("disconnect", agent, "--json").out)
    assert {change["outcome"] for change in gone["changes"]} == {"absent"}


def test_what_share_wrote_somewhere_is_taken_out_there(run: Run, own_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "any.json"
    assert "restart the program that" in run("share", "--with", "generic", "--write", "--path", str(file)).err
    done = run("disconnect", "generic", "--path", str(file))
    assert done.code == 0
    assert "it is deleted" in done.out
    assert not list(tmp_path.glob("any.json*"))


def test_disconnect_keeps_and_names_what_was_added(run: Run, own_home: Path) -> None:
    file = own_home / ".codex" / "config.toml"
    file.parent.mkdir()
    text = '[mcp_servers.castle]\ncommand = "castle-mcp"\nstartup_timeout_sec = 20\n'
    file.write_text(text, "utf-8")
    done = run("disconnect", "codex")
    assert done.code == 3
    assert f"MCP server: kept in {file} (it also holds" in done.out
    assert "startup_timeout_sec" in done.out
    assert file.read_text("utf-8") == text
    forced = run("disconnect", "codex", "--force")
    assert forced.code == 0
    assert f"{file}.castle-backup" in forced.err
    assert file.read_text("utf-8") == ""


def test_connect_offers_only_what_it_takes(run: Run) -> None:
    assert "generic" not in run("connect", "nosuch").err
    assert "gemini-cli" in run("connect", "nosuch").err
    assert "generic" in run("disconnect", "nosuch").err


def test_connect_takes_only_what_it_is_told(run: Run, own_home: Path) -> None:
    run("connect", "claude", "--no-hooks")
    assert sorted(tree(own_home)) == [".claude.json", ".claude.json.castle-made"]
    run("connect", "cursor")
    assert json.loads((own_home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]["castle"]


def test_connect_says_what_keeps_hooks_from_running(run: Run, own_home: Path) -> None:
    file = own_home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"disableAllHooks": true}', "utf-8")
    assert "disableAllHooks is set" in run("connect", "claude").err


def test_a_broken_castle_yaml_is_told_before_anything_is_changed(run: Run, own_home: Path) -> None:
    (own_home / ".castle").mkdir()
    (own_home / ".castle" / "castle.yaml").write_text("hooks: [", "utf-8")
    before = tree(own_home)
    assert run("connect", "codex").code == 2
    assert tree(own_home) == before


def test_the_list_of_tools_has_sets_and_hints(run: Run) -> None:
    every = {tool["name"]: tool for tool in json.loads(run("mcp", "--list-tools", "--json").out)}
    core = json.loads(run("mcp", "--list-tools", "--tools", "core", "--json").out)
    assert {tool["set"] for tool in core} == {"core"}
    assert {tool["name"] for tool in core} < set(every)
    assert every["castle_search"]["kind"] == "reads"
    assert "query" in every["castle_search"]["parameters"]["properties"]
    first = run("mcp", "--list-tools", "--tools", "core").out.splitlines()
    assert first[0].split() == ["tool", "set", "kind", "again", "what", "it", "does"]
    assert len(first) == len(core) + 1
