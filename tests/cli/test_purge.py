from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from castle.errors import PalaceError
from castle.store import purge as purging
from tests.cli.conftest import Run

TEXT = "the combination of the safe in the harbour office is not to be written down anywhere"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def note_id(run: Run) -> str:
    added = run("add", TEXT, "--wing", "home", "--room", "letters", "--json")
    assert added.code == 0, added.err
    return str(json.loads(added.out)["id"])


def answer(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{typed}\n"))


def test_without_a_terminal_yes_is_needed(run: Run, note_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{note_id[:6]}\n"))
    refused = run("purge", note_id, "--reason", "private")
    assert (refused.code, refused.out) == (1, "")
    assert "--yes" in refused.err
    assert run("get", note_id).code == 0
    done = run("purge", note_id, "--reason", "private", "--yes")
    assert done.code == 0
    assert "1 drawer of 1 source purged" in done.out
    gone = run("get", note_id)
    assert gone.code == 1
    assert "purged" in gone.err
    assert "private" in gone.err


def test_at_a_terminal_the_id_is_typed(run: Run, note_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "yes")
    refused = run("purge", note_id[:8], "--reason", "private")
    assert refused.code == 1
    assert "nothing was purged" in refused.err
    answer(monkeypatch, note_id[:6])
    done = run("purge", note_id[:8], "--reason", "private")
    assert done.code == 0
    assert "will be destroyed for good" in done.err


def test_a_wing_asks_for_the_number_of_drawers(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mined = run("mine", str(project))
    assert mined.code == 0, mined.err
    status = run("status", "--json")
    assert status.code == 0, status.err
    count = sum(place["current"] for place in json.loads(status.out)["places"])
    answer(monkeypatch, "6")
    assert run("purge", "--wing", "myapp", "--reason", "private").code == 1
    answer(monkeypatch, str(count))
    done = run("purge", "--wing", "myapp", "--reason", "private", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["drawers"] == count
    assert {Path(path["path"]).name for path in found["outside"] if path["holds"]}
    again = run("mine", str(project))
    assert again.code == 0
    assert "purged" in again.err
    assert run("verify").code == 0


def test_a_reason_and_a_name_are_needed(run: Run, note_id: str) -> None:
    assert run("purge", note_id, "--yes").code == 2
    assert run("purge", "--reason", "private", "--yes").code == 2
    assert run("purge", note_id, "--wing", "home", "--reason", "private", "--yes").code == 2
    assert run("purge", "ffffffff", "--reason", "private", "--yes").code == 1


def test_what_is_left_is_named(run: Run, note_id: str) -> None:
    other = run("add", TEXT, "--wing", "work", "--room", "letters", "--json")
    copy = json.loads(other.out)["id"]
    told = run("purge", note_id, "--reason", "private", "--yes")
    assert copy in told.err
    assert run("get", copy).code == 0
    assert run("purge", copy, "--copies", "--reason", "private", "--yes").code == 0
    refused = run("add", f"again: {TEXT}", "--wing", "work", "--room", "letters")
    assert refused.code == 1
    assert "purged" in refused.err


def raise_full() -> None:
    raise PalaceError("the disk is full")


@pytest.mark.parametrize("stop", ["clean_directory", "_throw_away"])
def test_the_command_of_a_purge_that_was_killed_finishes_it(
    run: Run, note_id: str, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    command = ("purge", note_id, "--reason", "private", "--yes")
    with monkeypatch.context() as patch:
        patch.setattr(purging, stop, killed)
        assert run(*command).code == 130
    assert "not finished: 1" in run("status").out
    with monkeypatch.context() as patch:
        patch.setattr(purging, "_throw_away", lambda *_: raise_full())
        late = run("purge")
        assert (late.code, "is not finished: the disk is full" in late.err) == (3, True)
    again = run(*command)
    assert again.code == 1
    assert "finished first, because it was begun before: 1 purge" in again.err
    assert "gone for good" in again.err
    assert run("verify").code == 0
    assert run("repair").code == 0
