from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle.service import Castle
from castle.sue.runs import RunError
from castle.sue.worker import work
from tests.cli.conftest import Run
from tests.llm.commands import FakeClaude
from tests.sue.scripted import DECISION, REQUIREMENTS, REVIEW, Script


@pytest.fixture
def drawers(run: Run, own_home: Path) -> list[str]:
    """Three requirements in a palace, as arguments."""
    with Castle(embedder="fake") as castle:
        ids = [castle.add(text, wing="billing", room="requirements").id for text in REQUIREMENTS]
    return [part for id_ in ids for part in ("--drawer", id_)]


def scripted(monkeypatch: pytest.MonkeyPatch, script: Script) -> None:
    monkeypatch.setattr("castle.sue.processes.start", lambda run: work(run, script))


def test_a_review_its_status_and_its_report(
    run: Run, drawers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, Script(*REVIEW))
    done = run("sue", "review", *drawers, "--decision", DECISION, "--max-turns", "14", "--wait")
    assert done.code == 0, done.err
    id_ = done.out.split()[0]
    assert done.out.splitlines()[0] == f"{id_}  completed  RESOLVED"
    assert "claim: On request the service deletes personal data" in done.out
    assert f"`castle sue report {id_[:12]}` prints the report" in done.err
    shown = run("sue", "status", id_[:8])
    assert (shown.code, shown.out) == (0, done.out)
    answer = json.loads(run("sue", "status", id_, "--json").out)
    assert (answer["status"], answer["turns"], answer["external"]) == ("completed", 12, False)
    assert answer["created_at"].endswith("+00:00")
    report = run("sue", "report", id_)
    assert report.out.startswith("# Review of requirements: euthyphro\n")
    assert json.loads(run("sue", "report", id_, "--json").out)["report"].strip() == report.out.strip()
    listed = run("sue", "status")
    assert id_ in listed.out
    assert "philebus" in listed.out
    everything = json.loads(run("sue", "status", "--json").out)
    assert [one["id"] for one in everything["reviews"]] == [id_]
    assert len(everything["lenses"]) == 9


def test_a_review_that_failed_ends_with_1(
    run: Run, drawers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, Script("no", "no"))
    done = run("sue", "review", *drawers, "--decision", DECISION, "--wait", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert (found["status"], found["why"]) == (
        "failed",
        "question 1, DEFINE: the output is not one JSON object",
    )
    assert run("sue", "status", found["id"]).code == 1


def test_whoever_is_beyond_this_machine_is_named(
    run: Run, drawers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeClaude(tmp_path / "bin", monkeypatch, "codex")
    monkeypatch.setattr("castle.sue.processes.start", lambda run: 0)
    done = run("sue", "review", *drawers[:2], "--decision", "d", "--provider", "codex", "--lens", "meno")
    assert done.code == 0
    assert "the text of 1 drawer goes to the command codex (gpt-5.6-luna)" in done.err
    assert "meno, turn 0 of 7, gpt-5.6-luna (codex)" in done.out
    assert "shows how it stands" in done.err


def test_whose_model_it_is_and_which_review_are_told_before_the_wait(
    run: Run, drawers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(castle: Castle, run: str) -> None:
        raise RunError(f"waited for {run}")

    FakeClaude(tmp_path / "bin", monkeypatch, "codex")
    monkeypatch.setattr("castle.sue.processes.start", lambda run: 0)
    monkeypatch.setattr(Castle, "sue_wait", broken_off)
    done = run("sue", "review", *drawers, "--decision", "d", "--provider", "codex", "--wait")
    goes, goes_on, waited = done.err.splitlines()
    assert goes == "the text of 3 drawers goes to the command codex (gpt-5.6-luna)"
    id_ = waited.rpartition(" ")[2]
    assert goes_on == f"review {id_[:12]} goes on by itself should this be broken off"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("review", "--decision", "d"), 2, "--drawer"),
        (("review", "--drawer", "abcdef", "--decision", "d", "--lens", "laches"), 2, "none of euthyphro"),
        (("review", "--drawer", "abcdef", "--decision", "d"), 1, "no drawer abcdef"),
        (("status", "0123456789"), 1, "no review 0123456789"),
        (("report", "x"), 2, "no id of a review"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    run: Run, drawers: list[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    refused = run("sue", *arguments)
    assert refused.code == code
    assert message in refused.err
