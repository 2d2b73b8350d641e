from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from castle.service import Castle
from castle.store import novelty
from castle.store.projection import Watermark
from tests.cli.conftest import Run

TWIN = "The harbour is closed on Sundays.\n"


def lose_scores() -> None:
    with Castle() as service:
        ledger = service._palace().ledger
        with ledger.write() as cx:
            novelty.start_over(cx, Watermark(ledger.lineage(0), 0))


@pytest.fixture
def palace(run: Run, project: Path) -> Path:
    """A palace that holds the small project, and one of its notes twice."""
    (project / "copy.txt").write_text(TWIN, encoding="utf-8")
    assert run("mine", str(project)).code == 0
    return project


def test_a_text_that_is_filed_already_is_not_new(run: Run, palace: Path) -> None:
    known = run("info-score", "The harbour is closed on Sundays.")
    assert known.code == 0
    assert known.out.startswith("novelty 0.000  low\n")
    assert "1.000" in known.out.splitlines()[2]
    assert "The harbour is closed on Sundays." in known.out
    new = json.loads(run("info-score", "xylophones", "--json").out)
    assert (new["band"], new["drawer"], new["behind"]) == ("high", None, 0)
    assert len(new["neighbours"]) == 5


def test_the_text_may_come_from_standard_input(
    run: Run, palace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TWIN.encode()), encoding="utf-8"))
    assert run("info-score", "--top-k", "1").out.startswith("novelty 0.000  low\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))
    broken = run("info-score")
    assert (broken.code, broken.err) == (2, "castle: standard input is not UTF-8 (byte 0)\n")


def test_a_drawer_is_compared_with_what_was_filed_before_it(run: Run, palace: Path) -> None:
    with Castle() as service:
        first, later = [d.id for d in service.list_drawers().drawers if d.text == TWIN]
    answer = json.loads(run("info-score", "--drawer", later[:10], "--top-k", "1", "--json").out)
    assert (answer["novelty"], answer["band"], answer["drawer"]) == (0.0, "low", later)
    assert [n["id"] for n in answer["neighbours"]] == [first]
    alone = json.loads(run("info-score", "--drawer", first, "--json").out)
    assert alone["novelty"] > 0.1
    assert later not in [n["id"] for n in alone["neighbours"]]


def test_suggestions_name_the_later_twin_and_change_nothing(run: Run, palace: Path) -> None:
    before = run("list", "--json").out
    found = run("prune-suggest")
    assert found.code == 0
    with Castle() as service:
        first, later = [d.id for d in service.list_drawers().drawers if d.text == TWIN]
    (line,) = found.out.splitlines()[1:]
    assert line.startswith(later)
    assert first in line
    assert "1 drawer of 5 below 0.1" in found.err
    assert "`castle forget ID`" in found.err
    assert run("list", "--json").out == before
    answer = json.loads(run("prune-suggest", "--json").out)
    (suggestion,) = answer["suggestions"]
    assert (suggestion["id"], suggestion["nearest"], suggestion["novelty"]) == (later, first, 0.0)
    assert suggestion["text"] == suggestion["nearest_text"] == TWIN
    assert run("forget", first).code == 0
    after = run("prune-suggest")
    assert (after.code, after.out, after.err) == (0, "", "none of 4 drawers is below 0.1\n")


def test_a_sample_looks_at_some_and_is_the_same_again(run: Run, palace: Path) -> None:
    answers = [run("prune-suggest", "--sample", "2", "--threshold", "1", "--json").out for _ in range(2)]
    assert answers[0] == answers[1]
    assert json.loads(answers[0])["examined"] == 2
    assert json.loads(run("prune-suggest", "--wing", "myapp", "--json").out)["drawers"] == 5


def test_drawers_without_a_score_are_counted_and_the_command_is_named(
    run: Run, palace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_scores()
    monkeypatch.setattr("castle.novelty.asking.REFRESH_SECONDS", -1.0)
    late = run("prune-suggest")
    assert late.code == 3
    assert "5 of 5 drawers have no score yet: `castle repair --backfill-novelty`" in late.err
    done = run("repair", "--backfill-novelty")
    assert (done.code, done.err) == (0, "5 drawers scored, 5 in all\n")
    again = json.loads(run("repair", "--backfill-novelty", "--json").out)
    assert again == {"drawers": 5, "scored": 0, "pending": 0, "reason": ""}
    assert run("prune-suggest").code == 0


def test_a_read_only_palace_answers(run: Run, palace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("prune-suggest").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert run("prune-suggest").code == 0
        assert run("info-score", "harbour").code == 0
    lose_scores()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert run("prune-suggest").code == 3
    refused = run("repair", "--backfill-novelty")
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "read-only" in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("info-score", " "), 2, "the text is empty"),
        (("info-score", "a", "--drawer", "abcdef"), 2, "name one of: a text, --drawer ID"),
        (("info-score", "--drawer", "abcdef0"), 1, "no drawer abcdef0"),
        (("info-score", "a", "--wing", "nowhere"), 1, "no drawers in wing nowhere"),
        (("info-score", "a", "--top-k", "0"), 2, "--top-k"),
        (("prune-suggest", "--threshold", "2"), 2, "--threshold"),
        (("prune-suggest", "--threshold", "nan"), 2, "--threshold"),
        (("prune-suggest", "--sample", "-1"), 2, "--sample"),
        (("prune-suggest", "--wing", "nowhere"), 1, "no drawers in wing nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    run: Run, palace: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_without_a_palace_they_say_how_to_make_one(run: Run) -> None:
    for arguments in (("info-score", "a"), ("prune-suggest",)):
        outcome = run(*arguments)
        assert outcome.code == 1
        assert "no palace at" in outcome.err
