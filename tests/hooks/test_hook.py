from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castle.clients.events import EVENTS
from castle.hooks import HARNESSES, HOOKS, SIGNALS, spool
from castle.hooks import payload as payloads
from castle.hooks.settings import load
from castle.store import spool as store_spool
from tests.hooks.conftest import CLAUDE_CODE, CODEX, SECRET, SESSION, events, hook, payload

Note = Callable[..., bool]
ALL = [("claude-code", name) for name in CLAUDE_CODE] + [("codex", name) for name in CODEX]


@pytest.mark.parametrize(("harness", "name"), ALL)
def test_every_documented_payload_is_noted(place: Path, harness: str, name: str) -> None:
    data = json.dumps(payload(harness, name, "/t/session.jsonl")).encode()
    done = hook(place, data, "--hook", name, "--harness", harness)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    if name in SIGNALS:
        assert events(place) == []
        return
    (event,) = events(place)
    assert event["hook"] == name
    assert event["harness"] == harness
    assert event["session"] == SESSION
    assert event["transcript"] == "/t/session.jsonl"
    assert event["cwd"] == "/nowhere/shop"
    assert abs(event["at"] / 1e6 - time.time()) < 600
    assert SECRET not in (place / "spool" / "events.jsonl").read_text(encoding="utf-8")


def test_the_details_of_an_event_are_kept(place: Path, note: Note) -> None:
    note(payload("claude-code", "precompact", "/t/a.jsonl"), "precompact")
    note(payload("codex", "stop", "/t/a.jsonl"), "stop", "codex")
    first, second = events(place)
    assert first["trigger"] == "auto"
    assert (second["turn_id"], second["stop_hook_active"]) == ("t1", False)


def test_only_the_owner_may_read_the_spool(place: Path, note: Note) -> None:
    note(payload("claude-code", "stop", "/t/a.jsonl"))
    assert stat.S_IMODE((place / "spool").stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "spool" / "events.jsonl").stat().st_mode) == 0o600


def test_nothing_but_the_standard_library_is_imported(place: Path) -> None:
    code = (
        "import sys, os\n"
        "before = set(sys.modules)\n"
        "os._exit = lambda code: None\n"
        "from castle.hooks import main\n"
        f"main(['--hook', 'stop', '--harness', 'codex', '--palace', {str(place)!r}])\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    data = json.dumps(payload("codex", "stop", "/t/a.jsonl")).encode()
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert len(events(place)) == 1
    names = done.stdout.decode().split()
    ours = {name for name in names if name.partition(".")[0] == "castle"}
    parts = ("payload", "settings", "spool", "start")
    assert ours == {"castle", "castle.hooks", *(f"castle.hooks.{part}" for part in parts)}
    others = {name.partition(".")[0] for name in names} - {"castle"}
    assert others <= set(sys.stdlib_module_names)
    assert not others & {"argparse", "dataclasses", "pathlib", "subprocess"}


GARBAGE = {
    "nothing": b"",
    "blank": b" \n\n",
    "binary": bytes(range(256)) * 50,
    "text": b"hello",
    "a list": b"[1, 2]",
    "deep": b'{"a":' * 100_000,
    "no transcript": json.dumps({"session_id": "a", "transcript_path": None}).encode(),
    "a number": json.dumps({"session_id": "a", "transcript_path": 5}).encode(),
    "relative": json.dumps({"session_id": "a", "transcript_path": "a.jsonl"}).encode(),
    "upwards": json.dumps({"session_id": "a", "transcript_path": "/t/../etc/a.jsonl"}).encode(),
    "another kind": json.dumps({"session_id": "a", "transcript_path": "/etc/passwd"}).encode(),
    "NUL": json.dumps({"session_id": "a", "transcript_path": "/t/\0.jsonl"}).encode(),
    "a surrogate": json.dumps({"session_id": "a", "transcript_path": "/t/\ud800.jsonl"}).encode(),
    "long": json.dumps({"session_id": "a", "transcript_path": f"/{'a' * 5000}.jsonl"}).encode(),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_names_no_transcript_is_said_on_stderr_and_exits_with_0(place: Path, data: bytes) -> None:
    done = hook(place, data, "--hook", "stop", "--harness", "claude-code")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"castle-hook: ")
    assert done.stderr.count(b"\n") == 1
    assert events(place) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_survived(note: Note, data: bytes) -> None:
    with mock.patch("castle.hooks.complain", return_value=False):
        assert note(data) is False


@pytest.mark.parametrize("id_", ["../../etc/passwd", "a b", "", "x" * 129, "é", 7, None, "$(rm -rf /)"])
def test_an_id_that_is_none_is_not_kept(place: Path, note: Note, id_: object) -> None:
    assert note(payload("claude-code", "stop", "/t/a.jsonl", session_id=id_))
    assert events(place)[0]["session"] == ""


@given(id_=st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True))
def test_an_id_is_kept(id_: str) -> None:
    assert payloads._session(id_) == id_


def test_a_path_that_is_no_utf8_still_names_its_file(place: Path, note: Note) -> None:
    raw = b'{"session_id":"a","transcript_path":"/t/gr\xfcn.jsonl"}'
    assert note(raw)
    assert os.fsencode(events(place)[0]["transcript"]) == b"/t/gr\xfcn.jsonl"


def test_the_home_directory_may_be_written_short(own_home: Path, place: Path, note: Note) -> None:
    assert note(payload("codex", "stop", "~/.codex/sessions/a.jsonl"), "stop", "codex")
    assert events(place)[0]["transcript"] == str(own_home / ".codex/sessions/a.jsonl")


def test_a_payload_without_end_is_read_to_a_bound_and_its_head_is_used(place: Path) -> None:
    head = json.dumps({"session_id": SESSION, "transcript_path": "/t/a.jsonl"})[:-1]
    fake = json.dumps('"transcript_path": "/t/wrong.jsonl"')
    data = f'{head}, "prompt": {fake[:-1]}'.encode() + b"x" * (payloads.MAX_BYTES + 100)
    done = hook(place, data, "--hook", "user-prompt-submit", "--harness", "codex")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [event["transcript"] for event in events(place)] == ["/t/a.jsonl"]


def test_a_fake_field_in_a_prompt_is_not_believed(place: Path, note: Note) -> None:
    inner = json.dumps('x "transcript_path": "/t/wrong.jsonl" x')
    assert note(f'{{"prompt": {inner}, "transcript_path": "/t/right.jsonl", "more'.encode()) is False
    descriptor, write = os.pipe()
    os.write(write, f'{{"prompt": {inner}, "transcript_path": "/t/right.jsonl", "more'.encode())
    data, whole = payloads.read(descriptor, 0.01)
    os.close(write)
    os.close(descriptor)
    assert not whole
    found = payloads.event("stop", "codex", payloads.fields(data, whole))
    assert found["transcript"] == "/t/right.jsonl"


def test_a_host_that_never_closes_stdin_is_not_waited_for(place: Path) -> None:
    command = [sys.executable, "-m", "castle.hooks", "--palace", str(place)]
    command += ["--hook", "stop", "--harness", "claude-code"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as silent:
        assert silent.wait(timeout=30) == 0
        assert silent.stderr is not None
        assert b"empty" in silent.stderr.read()
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as talking:
        assert talking.stdin is not None
        talking.stdin.write(json.dumps(payload("claude-code", "stop", "/t/a.jsonl")).encode())
        talking.stdin.flush()
        assert talking.wait(timeout=30) == 0
    assert len(events(place)) == 1


def test_a_palace_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    data = json.dumps(payload("codex", "stop", "/t/a.jsonl")).encode()
    done = hook(tmp_path / "none", data, "--hook", "stop", "--harness", "codex")
    assert done.returncode == 0
    assert b"no palace at" in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--hook"],
        ["--hook", "start", "--harness", "codex"],
        ["--hook", "stop", "--harness", "vim"],
        ["--what"],
    ],
)
def test_wrong_arguments_exit_with_0_too(place: Path, arguments: list[str]) -> None:
    done = hook(place, b"{}", *arguments)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"castle-hook: ")


def test_a_spool_that_cannot_be_written_is_said_and_exits_with_0(place: Path) -> None:
    (place / "spool").rename(place / "away")
    (place / "spool").write_bytes(b"")
    data = json.dumps(payload("codex", "stop", "/t/a.jsonl")).encode()
    done = hook(place, data, "--hook", "stop", "--harness", "codex")
    assert done.returncode == 0
    assert b"could not be noted" in done.stderr


def test_a_closed_stdin_and_stderr_are_survived(place: Path) -> None:
    code = "import os; os.close(0); os.close(2); from castle.hooks import main; main()"
    arguments = ["--hook", "stop", "--harness", "codex", "--palace", str(place)]
    assert subprocess.run([sys.executable, "-c", code, *arguments], check=False).returncode == 0


def test_the_palace_is_named_by_flag_environment_or_home() -> None:
    env = {"CASTLE_PALACE_PATH": "/env", "CASTLE_HOME": "/home"}
    assert load("/flag", env).palace == "/flag"
    assert load(None, env).palace == "/env"
    assert load(None, {"CASTLE_HOME": "/home"}).palace == "/home/palace"
    assert load(None, {}).palace == str(Path("~/.castle/palace").expanduser())


def test_the_program_finds_the_palace_that_castle_finds(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from castle import Castle

    assert load(None, os.environ).palace == str(Castle().root)
    monkeypatch.setenv("CASTLE_HOME", str(own_home / "elsewhere"))
    assert load(None, os.environ).palace == str(Castle().root)
    monkeypatch.setenv("CASTLE_PALACE_PATH", "~/p")
    assert load(None, os.environ).palace == str(Castle().root)


def test_hooks_and_drainer_mean_the_same_files() -> None:
    names = ("FOLDER", "FILE", "FAILED", "RESERVE", "RESERVED", "TURNS")
    assert [getattr(spool, name) for name in names] == [getattr(store_spool, name) for name in names]


def test_eight_processes_lose_nothing(place: Path) -> None:
    code = (
        "import sys\n"
        "from castle.hooks.spool import append\n"
        "for number in range(100):\n"
        "    append(sys.argv[1], {'at': 1, 'transcript': f'/t/{sys.argv[2]}-{number}.jsonl'})\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(place), str(number)]) for number in range(8)]
    drained: list[str] = []
    while any(writer.poll() is None for writer in writers):
        drained += take_all(place)
        time.sleep(0.05)  # a drainer that never rests would starve the writers
    assert [writer.wait() for writer in writers] == [0] * 8
    drained += take_all(place)
    assert set(drained) == {f"/t/{writer}-{number}.jsonl" for writer in range(8) for number in range(100)}
    assert store_spool.waiting(place) == 0


def take_all(place: Path) -> list[str]:
    files = store_spool.take(place)
    found, unreadable = store_spool.read(files)
    assert unreadable == []
    store_spool.settle(place, files, [], [])
    return [event.transcript for event in found]


def test_a_line_that_went_into_a_file_taken_away_is_written_again(place: Path) -> None:
    real = os.fsync
    taken: list[tuple[Path, ...]] = []

    def taken_meanwhile(descriptor: int) -> None:
        real(descriptor)
        if not taken:
            taken.append(store_spool.take(place))
            store_spool.settle(place, taken[0], [], [])

    with mock.patch("os.fsync", taken_meanwhile):
        spool.append(str(place), {"at": 1, "transcript": "/t/a.jsonl"})
    assert len(taken[0]) == 1
    assert [event["transcript"] for event in events(place)] == ["/t/a.jsonl"]


def test_a_line_cut_off_by_a_full_disk_spoils_no_other(place: Path, note: Note) -> None:
    (place / "spool" / "events.jsonl").write_bytes(b'{"v":1,"at":5,"tra')
    note(payload("claude-code", "stop", "/t/a.jsonl"))
    found, unreadable = store_spool.read(store_spool.take(place))
    assert [event.transcript for event in found] == ["/t/a.jsonl"]
    assert unreadable == [b'{"v":1,"at":5,"tra']


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_hook_that_is_killed_leaves_whole_lines(place: Path) -> None:
    code = (
        "import sys\n"
        "from castle.hooks.spool import append\n"
        "number = 0\n"
        "while True:\n"
        "    append(sys.argv[1], {'at': number, 'transcript': '/t/a.jsonl', 'cwd': 'x' * 3000})\n"
        "    number += 1\n"
        "    print(number, flush=True)\n"
    )
    told = 0
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            counted = [writer.stdout.readline() for _ in range(3)]
            timer = threading.Timer(0.02, writer.kill)
            timer.start()
            counted += writer.stdout.readlines()
            timer.join()
        told += int([line for line in counted if line.endswith("\n")][-1])
    found, unreadable = store_spool.read(store_spool.take(place))
    assert unreadable == []
    assert len(found) >= told


def test_the_scripts_of_the_package_are_there() -> None:
    import castle.hooks
    import castle.mcp

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    scripts = project["project"]["scripts"]
    assert scripts["castle-hook"] == "castle.hooks:main"
    assert scripts["castle-mcp"] == "castle.mcp:main"
    assert callable(castle.hooks.main)
    assert callable(castle.mcp.main)


def test_help_names_every_hook_and_harness(place: Path) -> None:
    done = hook(place, b"", "--help")
    assert all(name.encode() in done.stdout for name in (*HOOKS, *HARNESSES))


@pytest.mark.parametrize("host", HARNESSES)
def test_every_hook_that_a_host_is_given_is_known(host: str) -> None:
    own = CLAUDE_CODE if host == "claude-code" else CODEX
    assert {event.hook: event.event for event in EVENTS[host]} == {
        name: fields["hook_event_name"] for name, fields in own.items()
    }


def test_a_directory_that_no_file_can_have_is_not_kept(place: Path, note: Note) -> None:
    assert note(payload("codex", "stop", "/t/a.jsonl", cwd="/t/\ud800"))
    assert [event["cwd"] for event in events(place)] == [""]


@pytest.mark.parametrize("name", ["hooks.json", "wakeup.json", "drain.log", "failed.json", "reserve.jsonl"])
def test_a_pipe_is_not_waited_for(own_home: Path, tmp_path: Path, name: str) -> None:
    root = tmp_path / "palace"
    (root / "spool").mkdir(parents=True)
    home = own_home / ".castle"
    home.mkdir(exist_ok=True)
    folder = {"hooks.json": home, "wakeup.json": root}.get(name, root / "spool")
    os.mkfifo(folder / name)
    if name in ("failed.json", "reserve.jsonl"):
        (root / "spool" / "events.jsonl").mkdir()
    for event in ("session-start", "session-end"):
        data = json.dumps(payload("claude-code", event, str(tmp_path / "never.jsonl"))).encode()
        assert hook(root, data, "--hook", event, "--harness", "claude-code").returncode == 0
