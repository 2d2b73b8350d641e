from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.mine.test_convos import line, talk


@pytest.fixture
def noted(own_home: Path) -> Path:
    """A transcript that a hook has noted."""
    folder = own_home / ".castle" / "palace" / "spool"
    folder.mkdir(parents=True)
    transcript = own_home / "s1.jsonl"
    transcript.write_text("".join(talk(4)), encoding="utf-8")
    note(folder, transcript)
    return transcript


def note(folder: Path, transcript: Path) -> None:
    event = {"v": 1, "at": 2_000_000_000_000_000, "hook": "stop", "session": "s1"}
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**event, "transcript": str(transcript)}) + "\n")


def test_receipts_say_what_was_saved(run: Run, noted: Path) -> None:
    assert run("sweep").code == 0
    done = run("receipts")
    assert done.code == 0
    columns, row = done.out.splitlines()
    assert columns.split() == ["id", "saved", "session", "entries", "stored", "new", "state", "detail"]
    assert row.split()[2:] == ["s1", "4", "of", "4", "4", "ok"]
    assert done.err == "1-1 of 1\n"
    found = json.loads(run("receipts", "--json").out)
    assert found["receipts"][0]["entries"] == found["receipts"][0]["stored"] == 4
    assert found["receipts"][0]["at"].endswith("+00:00")
    assert json.loads(run("receipts", "--session", "other", "--json").out)["total"] == 0


def test_a_save_that_failed_is_shouted_until_one_succeeds(run: Run, noted: Path) -> None:
    run("sweep")
    noted.rename(noted.with_suffix(".away"))
    note(noted.parent / ".castle" / "palace" / "spool", noted)
    assert run("sweep").code == 3
    done = run("receipts", "--failed")
    assert done.code == 3
    assert "failed" in done.out
    assert "missing" in done.out
    assert "1 session not saved" in done.err
    assert run("receipts", "--limit", "1", "--json").code == 3
    status = run("status")
    assert status.code == 3
    assert "THE LAST SAVE of session s1 FAILED" in status.out
    assert f"missing ({noted})" in status.out
    assert "--dismiss" in status.out and "--dismiss" in done.err
    noted.with_suffix(".away").rename(noted)
    assert run("sweep").code == 0
    assert run("receipts").code == 0
    assert "failed, settled" in run("receipts").out
    assert run("receipts", "--failed", "--json").code == 0
    assert "FAILED" not in run("status").out


def test_what_is_gone_is_dismissed_and_said_to_be_lost(run: Run, noted: Path) -> None:
    noted.unlink()
    assert run("sweep").code == 3
    id_ = str(json.loads(run("receipts", "--json").out)["receipts"][0]["id"])
    assert run("receipts", "--dismiss", id_, "--failed").code == 2
    assert run("receipts", "--dismiss", "other").code == 1
    done = run("receipts", "--dismiss", id_)
    assert done.code == 0
    assert f"its transcript {noted} is gone: what was said in it and not saved before is lost" in done.out
    assert run("status").code == 0
    assert run("sweep").code == 0
    assert "failed, settled" in run("receipts").out


def test_what_is_private_is_told_apart(run: Run, noted: Path) -> None:
    noted.write_text("".join([line(0, "lit <private>ill</private> now")]), encoding="utf-8")
    run("sweep")
    assert "2 of 3, 1 withheld" in run("receipts").out
    found = json.loads(run("receipts", "--json").out)["receipts"][0]
    assert (found["entries"], found["stored"], found["withheld"]) == (3, 2, 1)


def test_a_terminal_of_80_columns_breaks_no_time(
    run: Run, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = "0199a1b2-c3d4-7000-8000-0123456789ab"
    event = json.dumps(
        {"at": 2_000_000_000_000_000, "hook": "stop", "session": session, "transcript": "/gone"}
    )
    spool = noted.parent / ".castle" / "palace" / "spool" / "events.jsonl"
    spool.write_text(f"{event}\n", encoding="utf-8")
    run("sweep")
    assert session in run("receipts").out
    at = json.loads(run("receipts", "--json").out)["receipts"][0]["at"]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    rows = run("receipts").out.splitlines()
    assert all(len(row) <= 80 for row in rows)
    assert sum(at[:16] in row and session[:13] in row for row in rows) == 1


def test_the_status_says_that_a_drainer_is_at_work(run: Run, noted: Path) -> None:
    run("sweep")
    note(spool := noted.parent / ".castle" / "palace" / "spool", noted)
    assert "waiting hook events: 1; `castle sweep` files" in run("status").out
    (spool / "drainer.lock").write_text(f"{os.getpid()}\n", encoding="utf-8")
    assert f"waiting hook events: 1; a drainer is at work (process {os.getpid()})" in run("status").out
