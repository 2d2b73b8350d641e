from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from castle.clients.events import EVENTS
from castle.clients.files import BACKUP, read
from castle.clients.program import is_program, program, quoted
from castle.clients.servers import Server, adding, snippet
from castle.clients.table import CLIENTS, Places, client
from castle.errors import RefusedError, UsageError
from castle.hooks import HARNESSES, HOOKS
from tests.clients.conftest import Write

WINDOWS = Server("C:\\Tools\\castle-mcp.exe", "C:\\Users\\me\\new palace")
ARGS = ["--palace", "C:\\Users\\me\\new palace"]


def test_events_are_hooks_that_castle_hook_takes() -> None:
    assert set(EVENTS) == set(HARNESSES)
    for events in EVENTS.values():
        assert {event.hook for event in events} == set(HOOKS)
    assert {known.host for known in CLIENTS if known.hooks_file is not None} == set(EVENTS)


@pytest.mark.parametrize("name", ["cursor", "vscode", "gemini-cli", "generic", "codex"])
def test_what_is_printed_is_what_the_client_reads(name: str) -> None:
    known = client(name)
    text = snippet(known, WINDOWS)
    value = tomllib.loads(text) if known.form == "toml" else json.loads(text)
    typed = {"type": "stdio"} if name == "vscode" else {}
    assert value == {known.key: {"castle": {**typed, "command": WINDOWS.command, "args": ARGS}}}
    assert known.key == {"vscode": "servers", "codex": "mcp_servers"}.get(name, "mcpServers")


def test_the_short_forms() -> None:
    short = Server("castle-mcp")
    assert snippet(client("codex"), short) == '[mcp_servers.castle]\ncommand = "castle-mcp"'
    assert json.loads(snippet(client("generic"), short)) == {
        "mcpServers": {"castle": {"command": "castle-mcp"}}
    }
    assert snippet(client("claude-code"), Server("castle-mcp", "/a b")) == (
        "claude mcp add castle --scope user -- castle-mcp --palace '/a b'"
    )


def test_a_client_that_is_not_known() -> None:
    with pytest.raises(UsageError, match="claude, codex, cursor, vscode, gemini-cli, generic"):
        client("emacs")


def test_the_copy_is_the_file_before_the_first_entry(write: Write) -> None:
    known = client("vscode")
    path = write("mcp.json", '{"servers": {}} // x\n')
    for palace in ("/one", "/two"):
        change = adding(known, read(path), Server("castle-mcp", palace), replace=True).done()
        assert change.backup == path.with_name(path.name + BACKUP)
        assert change.backup.read_text("utf-8") == '{"servers": {}} // x\n'
    assert sorted(file.name for file in path.parent.glob("mcp*")) == ["mcp.json", "mcp.json.castle-backup"]


def test_what_is_not_ours_is_kept_before_it_is_replaced(write: Write) -> None:
    text = '{"servers": {"castle": {"command": "chess"}}}'
    path = write("mcp.json", text)
    with pytest.raises(RefusedError):
        adding(client("vscode"), read(path), Server("castle-mcp"), replace=False)
    change = adding(client("vscode"), read(path), Server("castle-mcp"), replace=True).done()
    assert change.outcome == "replaced" and change.backup is not None
    assert change.backup.read_text("utf-8") == text


def test_what_the_user_added_to_the_entry_is_no_difference(write: Write) -> None:
    text = '{"mcpServers": {"castle": {"command": "castle-mcp", "args": [], "env": {"A": "b"}}}}'
    path = write("mcp.json", text)
    assert (
        adding(client("cursor"), read(path), Server("castle-mcp"), replace=False).done().outcome
        == "unchanged"
    )
    adding(client("cursor"), read(path), Server("castle-mcp", "/p"), replace=True).done()
    assert json.loads(path.read_text("utf-8"))["mcpServers"]["castle"] == {
        "command": "castle-mcp",
        "args": ["--palace", "/p"],
        "env": {"A": "b"},
    }


def test_an_entry_that_is_no_object(write: Write) -> None:
    path = write("mcp.json", '{"mcpServers": {"castle": 1}}')
    with pytest.raises(RefusedError, match=r"mcp.json:1:27: mcpServers.castle is not an object"):
        adding(client("cursor"), read(path), Server("castle-mcp"), replace=True)


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", "utf-8")
    path.chmod(0o755)
    return path


def test_the_name_is_enough_where_the_path_leads_to_it(tmp_path: Path) -> None:
    own = executable(tmp_path / "bin" / "castle-mcp")
    found = program("castle-mcp", graphical=False, env={"PATH": str(own.parent)}, beside=(own,))
    assert (found.command, found.why) == ("castle-mcp", "")
    found = program("castle-mcp", graphical=True, env={"PATH": str(own.parent)}, beside=(own,))
    assert found.command == str(own)
    assert "from the desktop" in found.why


def test_the_path_where_the_name_would_lead_elsewhere(tmp_path: Path) -> None:
    own = executable(tmp_path / "venv" / "bin" / "castle-mcp")
    other = executable(tmp_path / "other" / "castle-mcp")
    cases = {"": "not on the PATH", str(other.parent): "is another one"}
    for path, why in cases.items():
        found = program("castle-mcp", graphical=False, env={"PATH": path}, beside=(own,))
        assert found.command == str(own)
        assert why in found.why
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    found = program("castle-mcp", graphical=False, env={"PATH": str(own.parent)}, beside=(own,))
    assert (found.command, "virtual environment" in found.why) == (str(own), True)
    linked = tmp_path / "local" / "castle-mcp"
    linked.parent.mkdir()
    linked.symlink_to(own)
    found = program("castle-mcp", graphical=False, env={"PATH": str(linked.parent)}, beside=(own,))
    assert found.command == "castle-mcp"


def test_a_program_that_is_nowhere(tmp_path: Path) -> None:
    found = program("castle-mcp", graphical=False, env={"PATH": ""}, beside=(tmp_path / "x",))
    assert found.command == "castle-mcp"
    assert "nowhere" in found.why
    other = executable(tmp_path / "bin" / "castle-mcp")
    found = program("castle-mcp", graphical=False, env={"PATH": str(other.parent)}, beside=(tmp_path / "x",))
    assert (found.command, found.why) == ("castle-mcp", "")


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("castle-hook --hook stop", True),
        ("'/a b/castle-hook' --hook stop", True),
        ('"C:/x/castle-hook.exe" --hook stop', True),
        ("C:\\x\\castle-hook.exe", True),
        ("env A=1 castle-hook", True),
        ("my-castle-hook", False),
        ("castle-hooks", False),
        ("echo hook", False),
        (None, False),
        (["castle-hook"], False),
    ],
)
def test_what_is_ours(line: object, ours: bool) -> None:
    assert is_program(line, "castle-hook") is ours


def test_quoting_for_both_kinds_of_shell() -> None:
    assert quoted("/a b/castle-hook", windows=False) == "'/a b/castle-hook'"
    assert quoted("C:\\a b\\castle-hook.exe", windows=True) == '"C:/a b/castle-hook.exe"'


def test_a_home_that_is_named_by_a_tilde() -> None:
    file = client("codex").file
    assert file is not None
    assert file(Places(Path("/h"), {"CODEX_HOME": "~/c"})) == Path.home() / "c" / "config.toml"
