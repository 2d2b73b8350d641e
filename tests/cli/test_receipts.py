from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.mine.test_convos import talk


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
    assert columns.split() == ["saved", "session", "hook", "messages", "new", "state", "detail"]
    assert row.split()[1:] == ["s1", "stop", "4", "of", "4", "4", "ok"]
    assert done.err == "1-1 of 1\n"
    found = json.loads(run("receipts", "--json").out)
    assert found["receipts"][0]["expected"] == found["receipts"][0]["stored"] == 4
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
    noted.with_suffix(".away").rename(noted)
    assert run("sweep").code == 0
    assert run("receipts").code == 0
    assert "failed, settled" in run("receipts").out
    assert run("receipts", "--failed", "--json").code == 0
    assert "FAILED" not in run("status").out
