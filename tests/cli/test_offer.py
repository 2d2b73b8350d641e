from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.mine.test_convos import talk


@pytest.fixture
def transcripts(own_home: Path) -> Path:
    folder = own_home / ".claude" / "projects" / "-work-app"
    folder.mkdir(parents=True)
    (folder / "s1.jsonl").write_text("".join(talk(4)), encoding="utf-8")
    return folder


def test_mine_without_a_path_offers_the_transcripts_of_this_machine(
    run: Run, transcripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    offered = run("mine")
    assert offered.code == 0
    assert f"Claude Code: {transcripts.parent}" in offered.out
    assert "nothing filed" in offered.err
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert "4 messages filed" in run("mine").out
    assert json.loads(run("sessions", "--json").out)["sessions"][0]["session"] == "s1"


def test_mine_without_a_path_and_without_transcripts_says_what_to_do(run: Run) -> None:
    found = run("mine")
    assert found.code == 2
    assert "castle mine PATH" in found.err


def test_sweep_and_mine_give_one_drawer_each(run: Run, transcripts: Path) -> None:
    assert "4 messages filed" in run("sweep", str(transcripts)).out
    assert "0 messages filed" in run("mine", str(transcripts), "--mode", "convos").out
    assert "turn 3" in run("get", "--session", "s1").out
    assert "turn 2" in run("get", "u2", "--message").out
