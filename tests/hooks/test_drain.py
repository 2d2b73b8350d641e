from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import PalaceError
from castle.mine.spool import GIVE_UP_AFTER, DrainReport
from castle.store.locks import FileLock
from castle.store.spool import waiting
from tests.conftest import TurnedClock
from tests.mine.test_convos import talk

START = 1_800_000_000_000_000


@pytest.fixture
def castle(tmp_path: Path) -> Castle:
    return Castle(tmp_path / "palace", embedder="fake", clock=TurnedClock(START))


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "claude" / "s1.jsonl"
    path.parent.mkdir()
    path.write_text("".join(talk(4)), encoding="utf-8")
    return path


def spool(castle: Castle, transcript: Path | str, hook: str = "stop", at: int = START) -> None:
    folder = castle.root / "spool"
    folder.mkdir(parents=True, exist_ok=True)
    line = {"v": 1, "at": at, "hook": hook, "harness": "claude-code", "transcript": str(transcript)}
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def files(castle: Castle) -> list[str]:
    found = (path for path in (castle.root / "spool").iterdir() if path.stat().st_size)
    return sorted(path.name for path in found if path.name != "reserve.jsonl")


def test_what_a_hook_notes_is_filed_by_the_next_sweep(castle: Castle, transcript: Path) -> None:
    spool(castle, transcript)
    report = castle.drain_spool()
    assert (report.events, report.transcripts, report.filed, report.messages_new) == (1, 1, 1, 4)
    assert not report.incomplete
    assert files(castle) == []
    assert castle.sessions().total == 1
    assert castle.search("berth3").hits[0].text.startswith("turn 3")


def test_draining_twice_files_once(castle: Castle, transcript: Path) -> None:
    for name in ("session-start", "user-prompt-submit", "stop", "stop", "session-end"):
        spool(castle, transcript, name)
    assert waiting(castle.root) == 5
    first = castle.drain_spool()
    assert (first.events, first.transcripts, first.messages_new) == (5, 1, 4)
    assert castle.drain_spool() == DrainReport()
    spool(castle, transcript)
    assert castle.drain_spool().messages_new == 0
    with transcript.open("a", encoding="utf-8") as file:
        file.writelines(talk(6)[4:])
    spool(castle, transcript)
    assert castle.drain_spool().messages_new == 2
    assert castle.sessions().sessions[0].messages == 6


def test_nothing_noted_is_nothing_done(castle: Castle) -> None:
    assert castle.drain_spool() == DrainReport()
    assert not castle.root.exists()


def test_a_transcript_that_is_missing_is_reported_and_tried_again(castle: Castle, transcript: Path) -> None:
    missing = transcript.with_name("s2.jsonl")
    spool(castle, missing)
    spool(castle, transcript)
    report = castle.drain_spool()
    assert report.messages_new == 4
    assert [(skip.path, skip.reason) for skip in report.skipped] == [(str(missing), "missing")]
    assert (report.kept, report.given_up, waiting(castle.root)) == (1, 0, 1)
    assert castle.status().spool_events == 1
    missing.write_text("".join(talk(2)).replace('"s1"', '"s2"'), encoding="utf-8")
    report = castle.drain_spool()
    assert (report.messages_new, report.kept, waiting(castle.root)) == (2, 0, 0)


@pytest.mark.parametrize("name", ["session-start", "user-prompt-submit", "session-end"])
def test_a_session_in_which_nothing_was_said_is_no_failure(castle: Castle, tmp_path: Path, name: str) -> None:
    spool(castle, tmp_path / "never.jsonl", name)
    report = castle.drain_spool()
    assert (report.events, report.kept, report.skipped) == (1, 0, ())
    assert waiting(castle.root) == 0


def test_what_cannot_be_filed_for_a_month_is_let_go_and_said(castle: Castle, tmp_path: Path) -> None:
    spool(castle, tmp_path / "never.jsonl", at=START - GIVE_UP_AFTER - 10_000_000)
    report = castle.drain_spool()
    assert (report.kept, report.given_up) == (0, 1)
    assert "let go" in report.skipped[0].detail
    assert waiting(castle.root) == 0


def test_what_is_no_transcript_is_not_waited_on(castle: Castle, tmp_path: Path) -> None:
    fifo = tmp_path / "pipe.jsonl"
    os.mkfifo(fifo)
    (tmp_path / "folder.jsonl").mkdir()
    spool(castle, fifo)
    spool(castle, tmp_path / "folder.jsonl")
    report = castle.drain_spool()
    assert {skip.reason for skip in report.skipped} == {"not a regular file"}
    assert report.kept == 2


def test_lines_that_are_no_event_are_put_aside_and_said(castle: Castle, transcript: Path) -> None:
    spool(castle, transcript)
    lines = [
        b"nonsense",
        b"[]",
        b'{"at":"now","transcript":"/t"}',
        b'{"at":1,"transcript":"/\\u0000"}',
        b"\xff",
    ]
    with (castle.root / "spool" / "events.jsonl").open("ab") as file:
        file.writelines(line + b"\n" for line in lines)
    report = castle.drain_spool()
    assert report.messages_new == 4
    assert [skip.reason for skip in report.skipped] == ["broken"]
    assert (castle.root / "spool" / "unreadable.jsonl").read_bytes().splitlines() == lines
    assert waiting(castle.root) == 0


def test_a_drainer_that_was_killed_is_made_good_by_the_next(castle: Castle, transcript: Path) -> None:
    spool(castle, transcript)
    code = (
        "import os, sys\n"
        "from castle import Castle\n"
        "Castle.mine_conversations = lambda *_, **__: os._exit(9)\n"
        "Castle(sys.argv[1]).drain_spool()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(castle.root)], check=False)
    assert done.returncode == 9
    assert not (castle.root / "spool" / "events.jsonl").exists()
    spool(castle, transcript, "session-end")
    assert waiting(castle.root) == 2
    report = castle.drain_spool()
    assert (report.events, report.messages_new) == (2, 4)
    assert files(castle) == []


def test_an_interrupt_keeps_what_was_not_filed(
    castle: Castle, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool(castle, transcript)
    spool(castle, transcript.with_name("other.jsonl"))

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Castle, "mine_conversations", interrupted)
        report = castle.drain_spool()
    assert (report.interrupted, report.kept, waiting(castle.root)) == (True, 2, 2)
    assert castle.drain_spool().messages_new == 4


def test_two_drainers_do_not_meet(castle: Castle, transcript: Path) -> None:
    spool(castle, transcript)
    with FileLock(castle.root / "spool" / "drain.lock") as held:
        assert held
        report = castle.drain_spool()
    assert report.events == 0
    assert report.notes[0].startswith("the spool is not drained here: its lock is held")
    assert waiting(castle.root) == 1
    assert castle.drain_spool().messages_new == 4


def test_a_file_that_holds_no_conversation_is_kept_only_when_unread(castle: Castle, tmp_path: Path) -> None:
    notes = tmp_path / "notes.json"
    notes.write_text('{"some": "settings"}', encoding="utf-8")
    spool(castle, notes)
    report = castle.drain_spool()
    assert (report.kept, report.skipped) == (0, ())
    assert len(report.ignored) == 1


def test_a_spool_that_cannot_be_settled_is_one_line_and_waits(
    castle: Castle, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from castle.mine import spool as draining

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    spool(castle, transcript)
    with monkeypatch.context() as patch:
        patch.setattr(draining, "settle", full)
        with pytest.raises(PalaceError, match="the disk is full; what was noted there waits"):
            castle.drain_spool()
    assert waiting(castle.root) == 1
    left = castle.root / "spool" / "drain-1-2.tmp"
    left.touch()
    assert castle.drain_spool().events == 1
    assert not left.exists()
