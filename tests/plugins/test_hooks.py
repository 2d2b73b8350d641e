"""The commands of the plugins' hooks, run as a host runs them, on the payloads that it documents."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from castle.clients.events import EVENTS, hooks_file
from castle.hooks.spool import FILE, FOLDER, SIGNALS
from castle.hooks.start import take
from castle.local import socket_path
from castle.mine.formats import recall_block
from tests.plugins.hosts import HOSTS, documented, handlers, hooks_of, misfits

ALL = [(host, event) for host in HOSTS for event in documented(host)["input"]]


@pytest.fixture
def palace(own_home: Path) -> Iterator[Path]:
    """The palace that a hook finds without being told of one. Its drainer does not run, so events stay."""
    place = own_home / ".castle" / "palace"
    (place / FOLDER).mkdir(parents=True, mode=0o700)
    held = take(str(place))
    assert held is not None
    yield place
    os.close(held)


def noted(palace: Path) -> list[dict[str, Any]]:
    """What hooks have left in the spool: events, then signals."""
    files = [palace / FOLDER / name for name in (FILE, SIGNALS)]
    lines = [
        line for file in files if file.exists() for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [json.loads(line) for line in lines]


def called(host: str, event: str, payload: object) -> subprocess.CompletedProcess[bytes]:
    """Run the hook of an event through the shell, as a host does."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        handlers(host)[event]["command"],
        shell=True,
        input=json.dumps(payload).encode(),
        capture_output=True,
        env={**os.environ, "PATH": path},
        check=False,
        timeout=60,
    )


def printed(host: str, event: str, done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """Return the JSON that a hook printed, {} for none; fail when the host would not take it."""
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        return {}
    found: dict[str, Any] = json.loads(done.stdout)
    assert misfits(found, documented(host)["output"][event]) == []
    return found


@pytest.mark.parametrize(("host", "event"), ALL)
def test_every_documented_payload_is_noted_and_answered_as_the_host_allows(
    palace: Path, host: str, event: str
) -> None:
    payload = documented(host)["input"][event]
    said = printed(host, event, called(host, event, payload))
    assert not said.keys() & {"continue", "decision", "stopReason"}, "a hook never stands in the way"
    (found,) = noted(palace)
    named = {entry.event: entry.hook for entry in EVENTS[host]}
    assert (found["hook"], found["harness"]) == (named[event], host)
    assert found["session"] == payload["session_id"]
    if event in ("PostToolUse", "SubagentStop"):
        assert found.get("tool", found.get("agent")) == payload.get("tool_name", payload.get("agent_id"))
    else:
        assert Path(found["transcript"]) == Path(payload["transcript_path"]).expanduser()
        assert found["cwd"] == payload["cwd"]


@pytest.mark.parametrize("host", HOSTS)
def test_no_words_of_a_session_reach_the_spool(palace: Path, host: str) -> None:
    for event, payload in documented(host)["input"].items():
        called(host, event, payload)
    spooled = json.dumps(noted(palace))
    for payload in documented(host)["input"].values():
        for key in ("prompt", "last_assistant_message", "tool_input", "tool_response"):
            if payload.get(key):
                assert json.dumps(payload[key]) not in spooled


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_after_a_save_that_failed_starts_with_a_warning(palace: Path, host: str) -> None:
    failed = {"at": int(time.time() * 1e6), "detail": "the disk is full", "unnoted": True}
    (palace / FOLDER / "failed.json").write_text(json.dumps(failed), encoding="utf-8")
    payload = documented(host)["input"]["SessionStart"]
    said = printed(host, "SessionStart", called(host, "SessionStart", payload))
    assert "the disk is full" in said["systemMessage"]
    assert "the disk is full" in said["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_prompt_is_told_what_a_running_server_knows(palace: Path, host: str) -> None:
    compiled = {"v": 1, "palace": str(palace), "wake_up": True, "recall": True, "save_interval": 1}
    (palace.parent / "hooks.json").write_text(json.dumps(compiled), encoding="utf-8")
    known = recall_block("We count orders by their state.")
    place = Path(socket_path(str(palace)))
    place.parent.mkdir(mode=0o700, exist_ok=True)
    payload = documented(host)["input"]["UserPromptSubmit"]
    asked: list[dict[str, Any]] = []
    said: dict[str, Any] = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        place.chmod(0o600)
        server.listen()
        for _ in range(20):  # a hook waits 80 ms, which a busy machine may need for itself
            thread = threading.Thread(target=answered, args=(server, known, asked))
            thread.start()
            said = printed(host, "UserPromptSubmit", called(host, "UserPromptSubmit", payload))
            thread.join(timeout=30)
            if said:
                break
    output = {"hookEventName": "UserPromptSubmit", "additionalContext": known}
    assert said == {"hookSpecificOutput": output}
    assert asked[0]["prompt"] == payload["prompt"]


def answered(server: socket.socket, known: str, asked: list[dict[str, Any]]) -> None:
    """Answer one request as a server does; a hook that has stopped waiting is gone by then."""
    with contextlib.suppress(OSError, ValueError):
        connection, _ = server.accept()
        with connection, connection.makefile("rwb") as lines:
            asked.append(json.loads(lines.readline()))
            lines.write(json.dumps({"text": known}).encode() + b"\n")


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_starts_with_what_was_rendered_for_it(palace: Path, host: str) -> None:
    text = recall_block("We left REST because it needed many round trips.")
    rendered = {"v": 1, "rendered_at": int(time.time() * 1e6), "general": text, "places": {}}
    (palace / "wakeup.json").write_text(json.dumps(rendered), encoding="utf-8")
    payload = documented(host)["input"]["SessionStart"]
    output = printed(host, "SessionStart", called(host, "SessionStart", payload))["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert "many round trips" in output["additionalContext"]


@pytest.mark.parametrize(("host", "event"), ALL)
def test_a_machine_without_a_palace_is_left_in_peace(own_home: Path, host: str, event: str) -> None:
    assert printed(host, event, called(host, event, documented(host)["input"][event])) == {}
    assert not (own_home / ".castle" / "palace").exists()


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_without_a_transcript_does_no_harm(palace: Path, host: str) -> None:
    payload = documented(host)["input"]["Stop"] | {"transcript_path": None}
    assert printed(host, "Stop", called(host, "Stop", payload)) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_the_hooks_are_those_of_the_table(host: str) -> None:
    assert hooks_of(host) == hooks_file(host)["hooks"]
    assert documented(host)["input"].keys() == hooks_of(host).keys() == documented(host)["output"].keys()
    for event, payload in documented(host)["input"].items():
        assert payload["hook_event_name"] == event


@pytest.mark.parametrize("host", HOSTS)
def test_a_hook_is_the_installed_program_without_a_shell_script(host: str) -> None:
    for event, handler in handlers(host).items():
        assert handler["type"] == "command"
        program, *arguments = shlex.split(handler["command"])
        assert program == "castle-hook", event
        assert arguments[0::2] == ["--hook", "--harness"]
        assert not set(handler["command"]) & set("$`;|&<>'\"\\")
        assert 0 < handler["timeout"] <= 10


def test_codex_is_asked_only_for_what_it_does() -> None:
    found = handlers("codex")
    assert found["SessionEnd"]["timeout"] <= 3, "above that Codex warns at every start"
    assert not any("async" in handler for handler in found.values()), "some versions leave such hooks out"


def test_a_schema_refuses_what_it_does_not_name() -> None:
    schema = documented("codex")["output"]["SessionStart"]
    assert misfits({"hookSpecificOutput": {"hookEventName": "SessionStart"}}, schema) == []
    assert misfits({"hookSpecificOutput": {"more": 1}}, schema) == ["hookSpecificOutput.more is not allowed"]
    assert misfits({"systemMessage": 5}, schema) == ["systemMessage is no string"]
    assert misfits({"systemMessage": "x"}, documented("codex")["output"]["SessionEnd"])
    assert misfits([], schema) == ["the output is no object"]
