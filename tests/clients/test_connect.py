from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from castle.clients import connect as connecting
from castle.clients import files, servers
from castle.clients.changes import Change
from castle.clients.connect import Installed, connect, disconnect, installed
from castle.clients.events import EVENTS
from castle.clients.files import BACKUP, MADE, read
from castle.clients.servers import Server
from castle.clients.table import CLIENTS, Client, Places, client
from castle.errors import ConfigError, RefusedError, UsageError
from tests.clients.conftest import Write, settings, toml_texts, tree, written

SERVER = Server("/opt/castle/bin/castle-mcp", 'C:\\memory "x"')
WITH_FILES = [known for known in CLIENTS if known.file is not None]
with_a_home = hypothesis_settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def put(client: Client, where: Places, **wanted: bool) -> list[Change]:
    return connect(client, SERVER, where, hook_program="/opt/a b/castle-hook", **wanted)


def outcomes(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.what, change.outcome) for change in changes]


@pytest.mark.parametrize("known", WITH_FILES, ids=lambda known: known.name)
def test_an_empty_home_is_empty_again(known: Client, where: Places) -> None:
    put(known, where)
    assert tree(where.home)
    disconnect(known, where)
    assert tree(where.home) == {}


@pytest.mark.parametrize("known", WITH_FILES, ids=lambda known: known.name)
def test_twice_is_once(known: Client, where: Places) -> None:
    put(known, where)
    once = tree(where.home)
    again = put(known, where)
    assert {change.outcome for change in again} == {"unchanged"}
    assert tree(where.home) == once
    disconnect(known, where)
    assert {change.outcome for change in disconnect(known, where)} == {"absent"}


@st.composite
def homes(draw: st.DrawFn, known: Client) -> dict[Path, bytes]:
    """Draw the files of a client, each of which may be missing."""
    where = Places(Path("/"), {}, "linux")
    found: dict[Path, bytes] = {}
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    if known.file is not None and draw(st.booleans()):
        if known.form == "toml":
            text = draw(toml_texts())
        else:
            text, _ = draw(settings(keys=(known.key,), relaxed=known.relaxed))
            text = draw(st.sampled_from([text, text, text, "", "{}", "{ }\n"]))
        found[known.file(where)] = mark + text.encode()
    if known.hooks_file is not None and draw(st.booleans()):
        found[known.hooks_file(where)] = draw(hook_settings()).encode()
    return found


@st.composite
def hook_settings(draw: st.DrawFn) -> str:
    """Draw the settings of somebody who has hooks."""
    line = draw(st.sampled_from(["x", "my-castle-hook-er", "echo castle-hooks"]))
    theirs = {"type": "command", "command": line}
    groups = st.lists(st.just({"matcher": "*", "hooks": [theirs]}), max_size=2)
    hooks = draw(st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "SessionEnd"]), groups, max_size=3))
    value: dict[str, Any] = {"model": "x", "hooks": hooks, "env": {}}
    for key in draw(st.lists(st.sampled_from(sorted(value)), unique=True)):
        del value[key]
    return draw(st.sampled_from([draw(written(value)), draw(written(value)), "\n", "{}"]))


@with_a_home
@pytest.mark.parametrize("known", WITH_FILES, ids=lambda known: known.name)
@given(data=st.data())
def test_files_are_byte_for_byte_as_they_were(known: Client, data: Any, tmp_path_factory: Any) -> None:
    home = tmp_path_factory.mktemp("home")
    where = Places(home, {}, "linux")
    for path, content in data.draw(homes(known)).items():
        place = home / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    before = tree(home)
    put(known, where)
    once = tree(home)
    put(known, where)
    assert tree(home) == once != before
    disconnect(known, where)
    assert tree(home) == before


def test_what_a_user_changes_meanwhile_stays(where: Places, write: Write) -> None:
    path = write(".claude/settings.json", '{\n  "model": "opus",\n  "hooks": {\n    "Stop": []\n  }\n}\n')
    put(client("claude"), where)
    text = path.read_text("utf-8").replace('"opus"', '"sonnet"')
    path.write_text(text.replace('"PreCompact": [', '"PreCompact": [ {"hooks": []},'), "utf-8")
    disconnect(client("claude"), where)
    assert path.read_text("utf-8") == (
        '{\n  "model": "sonnet",\n  "hooks": {\n    "Stop": [],\n'
        '    "PreCompact": [ {"hooks": []}\n    ]\n  }\n}\n'
    )


def test_a_file_that_the_host_has_written_again_in_its_own_way(where: Places, write: Write) -> None:
    path = write(".claude.json", '{"numStartups":1,"mcpServers":{}}')
    put(client("claude"), where)
    value = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({"numStartups": 2, **value, "tips": {}}, indent=2), "utf-8")
    disconnect(client("claude"), where)
    expected = {"numStartups": 1, "mcpServers": {}, "tips": {}}
    assert path.read_text("utf-8") == json.dumps(expected, indent=2)


def test_a_hook_of_the_users_in_our_group_stays(where: Places, write: Write) -> None:
    path = write(".codex/hooks.json", "{}")
    put(client("codex"), where)
    text = path.read_text("utf-8")
    mine = '{"type": "command", "command": "mine"}'
    path.write_text(text.replace('"hooks": [\n', f'"hooks": [\n          {mine},\n', 1), "utf-8")
    disconnect(client("codex"), where)
    assert json.loads(path.read_text("utf-8")) == {"hooks": {"SessionStart": [{"hooks": [json.loads(mine)]}]}}


def test_another_palace_replaces_our_own_entries(where: Places, write: Write) -> None:
    before = 'model = "o3"'
    path = write(".codex/config.toml", before)
    hooks = write(".codex/hooks.json", '{"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]}}')
    was = hooks.read_bytes()
    put(client("codex"), where)
    path.write_text(path.read_text("utf-8") + "\nstartup_timeout_sec = 20", "utf-8")
    assert outcomes(disconnect(client("codex"), where)) == [("mcp", "kept"), ("hooks", "removed")]
    put(client("codex"), where, mcp=False)
    changes = connect(client("codex"), Server("castle-mcp"), where, hook_program="castle-hook")
    assert outcomes(changes) == [("mcp", "replaced"), ("hooks", "replaced")]
    assert tomllib.loads(path.read_text("utf-8"))["mcp_servers"]["castle"] == {
        "command": "castle-mcp",
        "startup_timeout_sec": 20,
    }
    commands = [one["hooks"][0]["command"] for one in json.loads(hooks.read_text("utf-8"))["hooks"]["Stop"]]
    assert commands == ["x", "castle-hook --hook stop --harness codex"]
    kept = path.read_bytes()
    disconnect(client("codex"), where, force=True)
    assert (path.read_text("utf-8"), hooks.read_bytes()) == (before, was)
    assert path.with_name(path.name + BACKUP).read_bytes() == kept


@pytest.mark.parametrize(
    ("name", "file", "text", "left"),
    [
        ("codex", ".codex/config.toml", '[mcp_servers.castle]\ncommand = "castle-mcp"\n', ""),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"castle": {"command": "castle-mcp"}}}', "{}"),
    ],
)
def test_a_file_that_the_user_made_is_never_deleted(
    where: Places, write: Write, name: str, file: str, text: str, left: str
) -> None:
    path = write(file, text)
    for again in range(2):
        if again:
            path.write_text(text, "utf-8")
            put(client(name), where, with_hooks=False)
        (change, *_) = disconnect(client(name), where)
        assert change.outcome == "removed"
        assert path.read_text("utf-8") == left


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("startup_timeout_sec = 20\n", "startup_timeout_sec"),
        ('[mcp_servers.castle.env]\nX = "1"\n', "env"),
        ('env = {X = "1"}\n', "env"),
    ],
)
def test_what_a_user_has_added_to_our_entry_stays(
    where: Places, write: Write, connected: bool, more: str, key: str
) -> None:
    if connected:
        path = write(".codex/config.toml", 'model = "o3"\n')
        put(client("codex"), where)
        path.write_text(path.read_text("utf-8") + more, "utf-8")
    else:
        path = write(".codex/config.toml", '[mcp_servers.castle]\ncommand = "castle-mcp"\n' + more)
    before = tree(path.parent)
    (change, _) = disconnect(client("codex"), where)
    assert (change.outcome, change.backup) == ("kept", None)
    assert change.note == (f"it also holds what Castle did not write: {key}; --force takes it out with them")
    left = tree(path.parent)
    assert left["config.toml"] == before["config.toml"]
    assert left.get("config.toml" + BACKUP) == before.get("config.toml" + BACKUP)
    (change, _) = disconnect(client("codex"), where, force=True)
    assert change.outcome == "removed" and change.backup is not None
    assert path.read_text("utf-8") == ('model = "o3"\n' if connected else "")
    assert change.backup.read_bytes() == before["config.toml"]


def test_values_that_say_nothing_are_no_addition(where: Places, write: Write) -> None:
    entry = {"type": "stdio", "command": "castle-mcp", "args": [], "env": {}}
    path = write(".claude.json", json.dumps({"mcpServers": {"castle": entry}, "tips": 1}))
    assert disconnect(client("claude"), where)[0].outcome == "removed"
    assert json.loads(path.read_text("utf-8")) == {"tips": 1}


def test_a_file_that_castle_made_goes_however_often_it_was_changed(where: Places) -> None:
    put(client("cursor"), where)
    connect(client("cursor"), Server("castle-mcp"), where, hook_program="castle-hook")
    (change,) = disconnect(client("cursor"), where)
    assert "Castle had made this file" in change.note
    assert tree(where.home) == {}
    put(client("cursor"), where)
    path = where.home / ".cursor" / "mcp.json"
    path.write_text(path.read_text("utf-8").replace('"command"', '"env": {"X": "1"}, "command"'), "utf-8")
    was = path.read_bytes()
    disconnect(client("cursor"), where, force=True)
    assert tree(path.parent) == {f"mcp.json{BACKUP}": was}


def test_a_copy_that_differs_from_what_is_left_stays(where: Places, write: Write) -> None:
    path = write(".cursor/mcp.json", '{"a": 1}')
    put(client("cursor"), where)
    path.write_text(path.read_text("utf-8").replace("1", "2", 1), "utf-8")
    (change,) = disconnect(client("cursor"), where)
    assert path.read_text("utf-8") == '{"a": 2}'
    assert change.backup is not None and change.backup.read_text("utf-8") == '{"a": 1}'


def test_one_file_is_disconnected_by_its_path(where: Places, tmp_path: Path) -> None:
    file = tmp_path / "any.json"
    put(client("codex"), where)
    servers.adding(client("generic"), read(file), SERVER, replace=False).done()
    once = tree(where.home)
    assert outcomes(disconnect(client("generic"), where, path=file)) == [("mcp", "removed")]
    assert not file.exists()
    assert outcomes(disconnect(client("codex"), where, path=tmp_path / "none")) == [("mcp", "absent")]
    assert tree(where.home) == once
    with pytest.raises(UsageError, match="castle disconnect generic --path FILE"):
        disconnect(client("generic"), where)


def test_a_server_of_that_name_that_is_not_ours_is_left(where: Places, write: Write) -> None:
    text = '{"mcpServers": {"castle": {"command": "chess"}}}'
    path = write(".cursor/mcp.json", text)
    with pytest.raises(RefusedError, match="another castle already: chess; nothing was changed"):
        put(client("cursor"), where)
    (change,) = disconnect(client("cursor"), where)
    assert (change.outcome, change.note) == ("left", "its castle calls chess, not castle-mcp")
    assert tree(path.parent) == {"mcp.json": text.encode()}


def test_nothing_is_written_when_one_of_the_files_does_not_parse(where: Places, write: Write) -> None:
    write(".claude/settings.json", '{"a": 1,}')
    before = tree(where.home)
    with pytest.raises(ConfigError, match=r"settings.json:1:8: .*; nothing was changed"):
        put(client("claude"), where)
    assert tree(where.home) == before
    write(".claude/settings.json", '{"a": 1}')
    put(client("claude"), where)
    write(".claude/settings.json", '{"a": 1,}')
    before = tree(where.home)
    with pytest.raises(ConfigError):
        disconnect(client("claude"), where)
    assert tree(where.home) == before


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"hooks": []}', "hooks is not an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
        ("[]", "not an object"),
    ],
)
def test_hooks_of_another_shape_are_refused(where: Places, write: Write, text: str, what: str) -> None:
    write(".claude/settings.json", text)
    with pytest.raises(RefusedError, match=what):
        put(client("claude"), where)


def test_only_what_is_asked_for(where: Places) -> None:
    assert outcomes(put(client("codex"), where, mcp=False)) == [("hooks", "added")]
    assert sorted(tree(where.home)) == [".codex", ".codex/hooks.json", f".codex/hooks.json{MADE}"]
    assert outcomes(put(client("codex"), where, with_hooks=False)) == [("mcp", "added")]
    assert outcomes(disconnect(client("codex"), where)) == [("mcp", "removed"), ("hooks", "removed")]


def test_the_hooks_are_those_of_the_table(where: Places) -> None:
    put(client("codex"), where)
    hooks = json.loads((where.home / ".codex/hooks.json").read_text("utf-8"))["hooks"]
    assert list(hooks) == [event.event for event in EVENTS["codex"]]
    assert hooks["SessionEnd"][0]["hooks"][0] == {
        "type": "command",
        "command": "'/opt/a b/castle-hook' --hook session-end --harness codex --palace 'C:\\memory \"x\"'",
        "timeout": 3,
    }
    assert "async" not in json.dumps(hooks)


def test_a_link_stays_a_link_and_the_mode_stays(where: Places, write: Write) -> None:
    real = write("dotfiles/mcp.json", "{}\n")
    real.chmod(0o664)
    link = where.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    put(client("cursor"), where)
    assert link.is_symlink()
    assert "castle" in real.read_text("utf-8")
    assert real.stat().st_mode & 0o777 == 0o664
    backup = link.with_name(link.name + BACKUP)
    assert (backup.read_text("utf-8"), backup.stat().st_mode & 0o777) == ("{}\n", 0o664)
    disconnect(client("cursor"), where)
    assert link.is_symlink()
    assert real.read_text("utf-8") == "{}\n"
    assert not backup.exists()


def test_a_link_to_nothing_is_followed(where: Places) -> None:
    link = where.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to("real.json")
    put(client("cursor"), where)
    assert "castle" in (link.parent / "real.json").read_text("utf-8")
    disconnect(client("cursor"), where)
    assert link.is_symlink() and not link.exists()


def test_new_files_are_the_users_own(where: Places) -> None:
    put(client("claude"), where)
    assert (where.home / ".claude.json").stat().st_mode & 0o777 == 0o600


def test_a_file_that_changes_under_our_hands_is_not_overwritten(
    where: Places, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(".cursor/mcp.json", "{}")
    first = read(path)
    path.write_text('{"a": 1}', "utf-8")
    with pytest.raises(RefusedError, match="run the command again"):
        files.write(first, "{}", keep=True)
    with pytest.raises(RefusedError, match="run the command again"):
        files.remove(first, below=None)
    assert tree(path.parent) == {"mcp.json": b'{"a": 1}'}


def test_what_is_no_file_of_text_is_refused(where: Places, write: Write) -> None:
    path = write(".cursor/mcp.json", "")
    path.write_bytes(b'{\n "\xe4": 1}')
    with pytest.raises(ConfigError, match=r"mcp.json:2:3: not UTF-8"):
        put(client("cursor"), where)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="not a regular file"):
        put(client("cursor"), where)


def test_variables_of_the_hosts_are_honoured(where: Places, tmp_path: Path) -> None:
    for known, variable, names in (
        (client("claude"), "CLAUDE_CONFIG_DIR", [".claude.json", "settings.json"]),
        (client("codex"), "CODEX_HOME", ["config.toml", "hooks.json"]),
        (client("gemini-cli"), "GEMINI_CLI_HOME", [".gemini", ".gemini/settings.json"]),
    ):
        place = tmp_path / known.name
        place.mkdir()
        moved = Places(where.home, {variable: str(place)}, "linux")
        put(known, moved)
        assert [name for name in sorted(tree(place)) if not name.endswith(MADE)] == names
        disconnect(known, moved)
        assert [name for name in tree(place) if name != ".gemini"] == []
    assert tree(where.home) == {}


@pytest.mark.parametrize(
    ("system", "env", "expected"),
    [
        ("linux", {}, "/h/.config/Code/User/mcp.json"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("darwin", {"XDG_CONFIG_HOME": "/x"}, "/h/Library/Application Support/Code/User/mcp.json"),
        ("win32", {"APPDATA": "/r"}, "/r/Code/User/mcp.json"),
        ("win32", {}, "/h/AppData/Roaming/Code/User/mcp.json"),
    ],
)
def test_where_vs_code_keeps_its_servers(system: str, env: dict[str, str], expected: str) -> None:
    file = client("vscode").file
    assert file is not None
    assert file(Places(Path("/h"), env, system)) == Path(expected)


def test_installed_says_what_is_there(where: Places) -> None:
    assert installed(where.home, {}) == []
    put(client("claude"), where)
    (where.home / ".cursor").mkdir()
    events = tuple(event.event for event in EVENTS["claude-code"])
    assert installed(where.home, {}) == [
        Installed("claude", where.home / ".claude.json", True, events, ""),
        Installed("cursor", where.home / ".cursor/mcp.json", False, (), ""),
    ]


def test_installed_tells_what_codex_trusts(where: Places, write: Write) -> None:
    put(client("codex"), where)
    assert installed(where.home, {})[0].note == ("hooks are not trusted in Codex yet: type /hooks in Codex")
    hooks = where.home / ".codex/hooks.json"
    config = where.home / ".codex/config.toml"
    names = ["session_start", "user_prompt_submit", "post_tool_use", "subagent_stop", "stop", "pre_compact"]
    trusted = "".join(f'\n[hooks.state."{hooks}:{name}:0:0"]\ntrusted_hash = "x"\n' for name in names)
    config.write_text(config.read_text("utf-8") + trusted, "utf-8")
    assert installed(where.home, {})[0].note == (
        "hooks of SessionEnd are not trusted in Codex yet: type /hooks in Codex"
    )
    config.write_text(f"{config.read_text('utf-8')}\n[features]\nhooks = false\n", "utf-8")
    assert "features.hooks is off" in installed(where.home, {})[0].note
    config.write_text(f"{config.read_text('utf-8')}\n[[hooks.Stop]]\nhooks = []\n", "utf-8")
    assert "it runs all of them" in installed(where.home, {})[0].note


def test_installed_tells_what_keeps_hooks_from_running(where: Places, write: Write) -> None:
    write(
        ".claude/settings.json",
        '{"disableAllHooks": true, "enabledPlugins": {"castle@x": true, "b@x": true}}',
    )
    (seen,) = installed(where.home, {})
    assert "disableAllHooks is set" in seen.note
    assert seen.note.endswith("the plugin castle@x is enabled")
    put(client("claude"), where)
    assert "each event is noted twice" in installed(where.home, {})[0].note
    path = where.home / ".claude/settings.json"
    path.write_text(path.read_text("utf-8").replace("castle-hook' --hook stop ", "other' "), "utf-8")
    assert "hooks are missing: Stop; `castle connect claude`" in installed(where.home, {})[0].note


@pytest.mark.parametrize(
    "content", [b"{", b"\xff", b"[]", b'{"mcpServers": 1, "servers": 1, "hooks": 1}', b"a = "]
)
def test_installed_never_raises(where: Places, content: bytes) -> None:
    for known in WITH_FILES:
        for place in (known.file, known.hooks_file):
            if place is not None:
                path = place(where)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    seen = installed(where.home, {})
    assert [one.client for one in seen] == [known.name for known in WITH_FILES]
    assert not any(one.mcp or one.hooks for one in seen)
    if content in (b"{", b"\xff", b"a = "):
        assert all(str(one.path.parent) in one.note for one in seen)


def test_what_is_to_be_done_after(where: Places) -> None:
    codex = client("codex")
    assert connecting.after(codex, put(codex, where)) == ["restart Codex to have it read its settings again"]
    assert connecting.after(codex, put(codex, where)) == []
    added = Change("mcp", where.home, "added")
    assert connecting.after(client("generic"), [added]) == [
        "restart the program that reads this file to have it read its settings again"
    ]
