"""Recorded sessions of real hosts, replayed event by event through the program and a drainer of its own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from castle import Castle
from castle.mine.convos import session_key
from castle.mine.formats import Message, Transcript, exact_bytes, open_container
from castle.store.receipts import Receipt
from castle.store.spool import waiting
from tests.hooks.conftest import payload
from tests.hooks.hosts import PROGRAM, Replay, call, log, wait_for_drainer, wait_for_end
from tests.mine.test_convos import EXPORTS, talk

CODEX = EXPORTS / "codex" / "rollout-2026-05-11T13-28-45-019e1695-0522-7c83-8b39-0dd379793f80.jsonl"
CLAUDE = EXPORTS / "claude_code" / "codemie"


@pytest.fixture
def root(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's palace, empty; no drainer of it is left behind."""
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "fake")
    path = own_home / ".castle" / "palace"
    path.mkdir(parents=True)
    yield path
    wait_for_end(path)


def played(root: Path, harness: str, source: Path) -> Replay:
    """Prepare a session of the user whose palace this is."""
    records = [json.loads(line) for line in source.read_bytes().splitlines()]
    if harness == "codex":
        session = records[0]["payload"]["id"]
    else:
        session = next(record["sessionId"] for record in records if "sessionId" in record)
    target = root.parents[1] / f".{harness}" / "sessions" / f"{session}.jsonl"
    cwd = root.parents[1] / "project"
    cwd.mkdir(exist_ok=True)
    return Replay(harness, source, target, session, str(cwd))


def expected_of(*paths: Path) -> Counter[tuple[str, str, bytes]]:
    """Every message of transcripts, by session, id and bytes, each once."""
    found = set()
    for path in paths:
        with open_container(path) as entries:
            for transcript in entries:
                assert isinstance(transcript, Transcript)
                for event in transcript.read():
                    if isinstance(event, Message):
                        content = exact_bytes(event.text, escaped=event.escaped)
                        found.add((session_key(transcript, event.session), event.id, content))
    return Counter(found)


def stored_in(castle: Castle) -> Counter[tuple[str, str, bytes]]:
    """Every message of the palace with the bytes that its drawers give back."""
    found: Counter[tuple[str, str, bytes]] = Counter()
    for row in castle.sessions(limit=100).sessions:
        for message in castle.get_session(row.session):
            found[row.source, message.id, message.text.encode("utf-8", "surrogatepass")] += 1
    return found


def last_receipts(castle: Castle) -> dict[str, Receipt]:
    """The latest receipt of each session."""
    page = castle.receipts(limit=1000)
    return {one.session: one for one in reversed(page.receipts)}


def files_of(replay: Replay) -> list[Path]:
    """The transcript of a session and the folder of its subagents."""
    return [path for path in (replay.target, replay.target.with_suffix("") / "subagents") if path.exists()]


def check(root: Path, *replays: Replay) -> None:
    """Every message is filed once, and the last receipt of each session says so."""
    wait_for_drainer(root)
    with Castle() as castle:
        expected = expected_of(*(path for replay in replays for path in files_of(replay)))
        stored = stored_in(castle)
        assert stored == expected
        lasts = last_receipts(castle)
        for replay in replays:
            last = lasts[replay.session]
            assert (last.state, last.detail) == ("ok", "")
            assert last.entries == last.stored == len(expected_of(*files_of(replay)))
            assert len(last.digest) == 32
        assert {finding.status for finding in castle.verify()} == {"ok"}
        assert castle.status().spool_events == 0
        assert castle.last_failed_save() is None


@pytest.mark.parametrize(
    ("harness", "source"),
    [
        pytest.param("claude-code", CLAUDE / "incremental-simple" / "turn-2.jsonl", marks=pytest.mark.slow),
        ("claude-code", CLAUDE / "incremental-subagents" / "turn-2.jsonl"),
        pytest.param("codex", CODEX, marks=pytest.mark.slow),
    ],
    ids=["claude-code", "claude-code with a subagent", "codex"],
)
def test_a_recorded_session_is_filed_as_it_grows(root: Path, harness: str, source: Path) -> None:
    replay = played(root, harness, source)
    replay.run()
    check(root, replay)
    assert replay.said == {}
    assert "started" in log(root)


@pytest.mark.slow
def test_two_sessions_at_once_are_both_filed(root: Path) -> None:
    replays = [
        played(root, "claude-code", CLAUDE / "incremental-simple" / "turn-2.jsonl"),
        played(root, "codex", CODEX),
    ]
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(replay.run) for replay in replays]:
            done.result()
    check(root, *replays)


def test_the_next_session_begins_with_what_the_last_one_left(root: Path) -> None:
    first = played(root, "claude-code", CLAUDE / "incremental-simple" / "turn-2.jsonl")
    first.run()
    check(root, first)
    data = payload("claude-code", "session-start", str(first.target), session_id="next", cwd=first.cwd)
    said = json.loads(call("claude-code", "session-start", data).stdout)
    assert said["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    context = said["hookSpecificOutput"]["additionalContext"]
    assert context.startswith('<castle-recall v="1">')
    assert "systemMessage" not in said


@pytest.mark.slow
def test_what_a_killed_drainer_left_is_filed_by_the_next(root: Path) -> None:
    transcript = root.parents[1] / "long.jsonl"
    transcript.write_text("".join(talk(2000)), encoding="utf-8")
    data = payload("claude-code", "stop", str(transcript), session_id="s1")
    assert call("claude-code", "stop", data).stderr == b""
    pid, stored = _killed_at_work(root)
    assert f" {pid} started" in log(root)
    assert 0 < stored < 2000
    assert waiting(root) == 1
    assert call("claude-code", "session-end", {**data, "hook_event_name": "SessionEnd"}).stderr == b""
    wait_for_drainer(root)
    with Castle() as castle:
        assert castle.sessions().sessions[0].messages == 2000
        last = castle.receipts().receipts[0]
        assert (last.state, last.entries, last.stored) == ("ok", 2000, 2000)
        assert castle.status().spool_events == 0


def _killed_at_work(root: Path) -> tuple[int, int]:
    """Kill the drainer when it has filed a part; return its id and the number of messages in the ledger."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if _count(root):
            pid = int((root / "spool" / "drainer.lock").read_text(encoding="ascii"))
            os.kill(pid, signal.SIGKILL)
            wait_for_end(root)
            return pid, _count(root)
        time.sleep(0.005)
    raise AssertionError("no drainer has begun")


def _count(root: Path) -> int:
    """Count the messages in the ledger as a stranger to it."""
    try:
        with closing(sqlite3.connect(f"file:{root}/castle.db?mode=ro", uri=True)) as cx:
            return int(cx.execute("SELECT count(*) FROM messages").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.slow
def test_twenty_hooks_at_once_start_one_drainer(root: Path) -> None:
    transcripts = []
    for number in range(20):
        transcript = root.parents[1] / f"t{number}.jsonl"
        transcript.write_text("".join(talk(2)).replace('"s1"', f'"t{number}"'), encoding="utf-8")
        transcripts.append(transcript)
    hooks = []
    for transcript in transcripts:
        data = payload("claude-code", "stop", str(transcript), session_id=transcript.stem)
        command = [str(PROGRAM), "--hook", "stop", "--harness", "claude-code"]
        hook = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(data).encode())
        hook.stdin.close()
        hooks.append(hook)
    for hook in hooks:
        assert hook.stderr is not None
        assert (hook.wait(60), hook.stderr.read()) == (0, b"")
        hook.stderr.close()
    wait_for_drainer(root)
    assert log(root).count("started") == 1
    with Castle() as castle:
        assert castle.sessions().total == 20
        assert {one.state for one in castle.receipts(limit=100).receipts} == {"ok"}


@pytest.mark.slow
def test_a_save_that_fails_is_told_until_one_succeeds(root: Path) -> None:
    transcript = root.parents[1] / "s1.jsonl"
    data = payload("claude-code", "stop", str(transcript), session_id="s1")
    assert call("claude-code", "stop", data).stdout == b""
    wait_for_drainer(root)
    with Castle() as castle:
        failure = castle.last_failed_save()
        assert failure is not None
        assert (failure.session, failure.state, failure.detail) == ("s1", "failed", "missing")
    begin = payload("claude-code", "session-start", str(transcript), session_id="s2", source="startup")
    said = json.loads(call("claude-code", "session-start", begin).stdout)
    assert said["systemMessage"].startswith("Cognitive Castle: the last save failed (")
    assert "): missing; `castle receipts --dismiss s1`" in said["systemMessage"]
    assert (root / "spool" / "drainer.lock").read_bytes() == b"", "it has ended, and says so"
    assert "the last save failed" in said["hookSpecificOutput"]["additionalContext"]
    transcript.write_text("".join(talk(3)), encoding="utf-8")
    assert call("claude-code", "stop", data).stdout == b""
    wait_for_drainer(root)
    with Castle() as castle:
        assert castle.last_failed_save() is None
        newest, oldest = castle.receipts(session="s1").receipts
        assert (newest.state, newest.entries, newest.stored, newest.new) == ("ok", 3, 3, 3)
        assert oldest.settled_at == newest.at
    said = json.loads(call("claude-code", "session-start", begin).stdout)
    assert "systemMessage" not in said
    assert "failed" not in said["hookSpecificOutput"]["additionalContext"]
