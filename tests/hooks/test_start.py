from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from castle import Castle, config
from castle.hooks import complain, drain, spool, start
from castle.store.spool import pending, waiting
from tests.hooks.conftest import events, hook, payload
from tests.hooks.hosts import call, log, wait_for_drainer, wait_for_end
from tests.mine.test_convos import talk

Note = Callable[..., bool]


@pytest.fixture
def root(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A palace's directory in which drainers may start."""
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "fake")
    path = own_home / ".castle" / "palace"
    (path / "spool").mkdir(parents=True)
    yield path
    wait_for_end(path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The palaces whose drainer would have been started."""
    roots: list[str] = []
    monkeypatch.setattr(start, "start", roots.append)
    return roots


def transcript(root: Path, count: int = 4, name: str = "s1") -> Path:
    path = root.parents[1] / f"{name}.jsonl"
    path.write_text("".join(talk(count)).replace('"s1"', f'"{name}"'), encoding="utf-8")
    return path


def test_the_lock_is_held_once(place: Path, root: Path) -> None:
    assert start.take(str(place)) is None
    held = start.take(str(root))
    assert held is not None
    assert start.take(str(root)) is None
    os.close(held)
    again = start.take(str(root))
    assert again is not None
    os.close(again)


@pytest.mark.parametrize("name", ["stop", "precompact", "session-end"])
def test_what_ends_something_is_filed_at_once(place: Path, note: Note, started: list[str], name: str) -> None:
    note(payload("claude-code", name, "/t/a.jsonl"), name)
    assert started == [str(place)]


@pytest.mark.parametrize("name", ["session-start", "user-prompt-submit", "post-tool-use", "subagent-stop"])
def test_what_begins_something_is_filed_later(note: Note, started: list[str], name: str) -> None:
    note(payload("claude-code", name, "/t/a.jsonl"), name)
    assert started == []


def test_a_session_that_begins_has_filed_what_waits(note: Note, started: list[str]) -> None:
    note(payload("claude-code", "user-prompt-submit", "/t/a.jsonl"), "user-prompt-submit")
    note(payload("claude-code", "session-start", "/t/b.jsonl"), "session-start")
    assert len(started) == 1


def test_a_session_that_begins_where_something_depends_on_the_place_has_it_checked(
    place: Path, note: Note, started: list[str]
) -> None:
    (place / "wakeup.json").write_text(json.dumps({"v": 1, "checked": ["/nowhere/shop"]}), encoding="utf-8")
    note(payload("claude-code", "session-start", "/t/b.jsonl", cwd="/nowhere/inn"), "session-start")
    assert started == []
    (place / "spool" / "events.jsonl").unlink()
    note(payload("claude-code", "session-start", "/t/b.jsonl", cwd="/nowhere/shop/web"), "session-start")
    assert len(started) == 1


def test_saves_happen_every_so_many_stops_and_at_every_end(
    place: Path, note: Note, started: list[str], own_home: Path
) -> None:
    (own_home / ".castle").mkdir()
    settings = {"v": 1, "save_interval": 3, "mtime_ns": 0}
    (own_home / ".castle" / "hooks.json").write_text(json.dumps(settings), encoding="utf-8")

    def counts(*names: str, session: str = "s1") -> list[int]:
        found = []
        for name in names:
            started.clear()
            note(payload("claude-code", name, "/t/a.jsonl", session_id=session), name)
            found.append(len(started))
        return found

    assert counts("stop", "stop", "stop", "stop", "stop", "stop", "stop") == [0, 0, 1, 0, 0, 1, 0]
    assert counts("stop", "stop", session="s2") == [0, 0]
    assert counts("precompact", "session-end") == [1, 1]
    assert counts("stop", "stop", "stop") == [0, 0, 1]
    assert counts("stop", session="no id") == [1]
    assert len(events(place)) == 15
    assert {file.name for file in (place / "spool" / "turns").iterdir()} == {"s1", "s2"}


def test_a_signal_says_what_was_used_and_nothing_else(place: Path, note: Note) -> None:
    assert note(payload("claude-code", "post-tool-use", "/t/a.jsonl"), "post-tool-use")
    assert note(payload("codex", "subagent-stop", "/t/a.jsonl"), "subagent-stop", "codex")
    note(payload("codex", "post-tool-use", "/t/a.jsonl", tool_name="rm -rf <x>\n"), "post-tool-use", "codex")
    lines = (place / "spool" / "signals.jsonl").read_text(encoding="utf-8").splitlines()
    first, second, third = map(json.loads, lines)
    assert first.keys() == {"v", "at", "hook", "harness", "session", "tool", "call", "cwd", "success"}
    assert (first["hook"], first["tool"], first["call"], first["success"]) == (
        "post-tool-use",
        "Bash",
        "toolu_1",
        True,
    )
    assert (second["harness"], second["agent"]) == ("codex", "019e1695-0522-7c83-8b39-0dd379793f80")
    assert third["tool"] == ""
    assert waiting(place) == 0


def test_signals_are_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_SIGNALS", 100)
    for number in range(10):
        spool.signal(str(place), {"v": 1, "number": number})
    files = sorted(file.name for file in (place / "spool").glob("signals*"))
    assert files == ["signals.jsonl", "signals.jsonl.1"]
    assert (place / "spool" / "signals.jsonl.1").stat().st_size < 200


def test_a_drainer_that_cannot_be_started_leaves_the_event_to_the_next(root: Path) -> None:
    path = transcript(root)
    data = json.dumps(payload("claude-code", "stop", str(path))).encode()
    code = (
        "import sys; sys.executable = '/nowhere/python'\n"
        "from castle.hooks import main\n"
        "main(['--hook', 'stop', '--harness', 'claude-code'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"the drainer cannot be started" in done.stderr
    assert waiting(root) == 1
    other = transcript(root, name="s2")
    call("claude-code", "stop", payload("claude-code", "stop", str(other)))
    wait_for_drainer(root)
    with Castle() as castle:
        assert castle.sessions().total == 2


def test_what_comes_between_the_last_look_and_the_end_is_not_left_behind(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, late = transcript(root), transcript(root, name="s2")
    append(root, first)
    real = drain._Work.run
    hooks: list[subprocess.CompletedProcess[bytes]] = []

    def run(self: drain._Work) -> None:
        real(self)
        if not hooks:
            # The drainer has looked for the last time and holds the lock still: the hook starts none.
            data = json.dumps(payload("claude-code", "stop", str(late))).encode()
            hooks.append(hook(root, data, "--hook", "stop", "--harness", "claude-code"))

    monkeypatch.setattr(drain._Work, "run", run)
    monkeypatch.setattr(drain, "IDLE_SECONDS", 0.2)
    drain.serve(root)
    assert hooks[0].stderr == b""
    assert not pending(root)
    with Castle() as castle:
        assert castle.sessions().total == 2


def append(root: Path, path: Path) -> None:
    spool.append(
        str(root),
        {"v": 1, "at": 1, "hook": "stop", "harness": "claude-code", "session": "s1", "transcript": str(path)},
    )


def test_a_host_that_writes_its_last_words_after_its_hook_loses_none(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(root, 4)
    append(root, path)
    real = drain._Work._until_idle
    passes: list[int] = []

    def until_idle(self: drain._Work) -> None:
        real(self)
        passes.append(1)
        if len(passes) == 1:
            with path.open("a", encoding="utf-8") as file:
                file.writelines(talk(6)[4:])

    monkeypatch.setattr(drain._Work, "_until_idle", until_idle)
    monkeypatch.setattr(drain, "IDLE_SECONDS", 0.2)
    drain.serve(root)
    with Castle() as castle:
        assert castle.sessions().sessions[0].messages == 6
        newest, oldest = castle.receipts().receipts
        assert (oldest.hook, oldest.entries, newest.hook, newest.stored) == ("stop", 4, "late", 6)


def test_who_finds_the_lock_taken_leaves_the_work_to_its_holder(place: Path) -> None:
    drain.serve(place)
    assert not (place / "castle.db").exists()


def test_a_directory_called_castle_in_a_project_is_not_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = root.parents[1] / "project"
    (project / "castle" / "hooks").mkdir(parents=True)
    for file in ("castle/__init__.py", "castle/hooks/__init__.py", "castle/hooks/drain.py", "json.py"):
        (project / file).write_text("raise SystemExit(7)\n", encoding="utf-8")
    monkeypatch.chdir(project)
    path = transcript(root)
    assert call("claude-code", "stop", payload("claude-code", "stop", str(path))).stderr == b""
    wait_for_drainer(root)
    with Castle() as castle:
        assert castle.sessions().total == 1


def test_the_log_is_private_bounded_and_without_words(root: Path) -> None:
    file = root / "spool" / "drain.log"
    file.write_bytes(b"x" * (start.MAX_LOG + 1))
    path = transcript(root)
    call("claude-code", "stop", payload("claude-code", "stop", str(path)))
    wait_for_drainer(root)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size < 4096
    assert (root / "spool" / "drain.log.1").stat().st_size == start.MAX_LOG + 1
    assert "4 messages filed" in log(root)
    assert "berth" not in log(root)


def test_a_palace_that_cannot_be_used_is_told_and_loses_nothing(root: Path) -> None:
    (root / "castle.db").write_bytes(b"not a database" * 100)
    path = transcript(root)
    call("claude-code", "stop", payload("claude-code", "stop", str(path)))
    wait_for_drainer(root)
    assert waiting(root) == 1
    said = call("claude-code", "session-start", payload("claude-code", "session-start", str(path)))
    assert "not a database" in json.loads(said.stdout)["systemMessage"]


def test_broken_settings_are_told_and_lose_nothing(root: Path) -> None:
    (root.parent / "castle.yaml").write_text("hooks: [", encoding="utf-8")
    path = transcript(root)
    done = call("claude-code", "stop", payload("claude-code", "stop", str(path)))
    assert b"not compiled" in done.stderr
    wait_for_end(root)
    assert waiting(root) == 1
    said = call("claude-code", "session-start", payload("claude-code", "session-start", str(path)))
    assert "castle.yaml" in json.loads(said.stdout)["systemMessage"]


def test_the_drainer_compiles_settings_that_were_edited_by_hand(root: Path) -> None:
    (root.parent / "castle.yaml").write_text("hooks:\n  save_interval: 5\n", encoding="utf-8")
    path = transcript(root)
    call("claude-code", "stop", payload("claude-code", "stop", str(path)))
    wait_for_drainer(root)
    written = json.loads((root.parent / "hooks.json").read_text(encoding="utf-8"))
    assert written["save_interval"] == 5


def test_settings_that_name_another_palace_are_followed_after_one_hook(root: Path) -> None:
    other = root.parents[1] / "other"
    other.mkdir()
    root.rename(root.with_name("away"))
    (root.parent / "castle.yaml").write_text(f"palace_path: {other}\n", encoding="utf-8")
    path = transcript(root)
    data = payload("claude-code", "stop", str(path))
    assert b"no palace at" in call("claude-code", "stop", data).stderr
    deadline = time.monotonic() + 60
    while not (root.parent / "hooks.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert call("claude-code", "stop", data).stderr == b""
    wait_for_drainer(other)
    with Castle() as castle:
        assert (castle.root, castle.sessions().total) == (other, 1)
    root.with_name("away").rename(root)


def test_counts_of_sessions_that_are_over_are_thrown_away(root: Path) -> None:
    (root / "spool" / "turns").mkdir()
    for name, age in (("old", 31 * 86_400), ("new", 0)):
        file = root / "spool" / "turns" / name
        file.write_bytes(b"..")
        os.utime(file, (time.time() - age,) * 2)
    append(root, transcript(root))
    drain.serve(root)
    assert [file.name for file in (root / "spool" / "turns").iterdir()] == ["new"]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_message_on_the_desktop_says_how_much_was_filed(
    root: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    programs = root.parents[1] / "bin"
    programs.mkdir()
    program = programs / "notify-send"
    program.write_text(f'#!/bin/sh\necho "$@" >> {programs}/shown\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    if wanted:
        config.set_user("hooks.desktop_toast", "true")
    append(root, transcript(root, 3))
    drain.serve(root)
    shown = programs / "shown"
    assert shown.exists() is wanted
    if wanted:
        text = shown.read_text(encoding="utf-8")
        assert text == "--app-name=castle Cognitive Castle 3 messages filed\n"


def test_a_complaint_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert complain("a\nb") is False
    assert capfd.readouterr().err == "castle-hook: a b\n"


def test_an_event_while_a_killed_restore_has_left_no_palace_is_filed(root: Path) -> None:
    aside = root.with_name(f"{root.name}.before-restore-20260101T000000Z")
    draft = root.with_name(f".{root.name}.0a1b2c3d.draft")
    draft.mkdir()
    (draft / "aside").write_text(aside.name, encoding="utf-8")
    root.rename(aside)
    path = transcript(root)
    data = payload("claude-code", "stop", str(path))
    assert call("claude-code", "stop", data).stderr == b""
    deadline = time.monotonic() + 60
    while (not root.is_dir() or pending(root)) and time.monotonic() < deadline:
        time.sleep(0.05)
    wait_for_drainer(root)
    with Castle() as castle:
        assert (castle.root, castle.sessions().total) == (root, 1)
    assert not draft.exists()
