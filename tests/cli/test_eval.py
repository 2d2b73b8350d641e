from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle import Castle
from castle.store.catchup import missing
from tests.cli.conftest import Run


@pytest.fixture
def palace(run: Run, project: Path) -> None:
    notes = "".join(
        f"The keeper of lighthouse number {n} wrote down every ship that passed in week {n * 7}.\n\n"
        for n in range(6)
    )
    (project / "log.txt").write_text(notes, encoding="utf-8")
    assert run("mine", str(project)).code == 0


def test_shares_are_shown_and_kept(run: Run, palace: None) -> None:
    done = run("eval", "--probes", "4", "--mode", "fast")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["probes", "asked", "R@1", "R@5", "unsure"]
    assert "false confidence" in done.out
    again = run("eval", "--probes", "4", "--mode", "fast")
    assert "before, " in again.err
    shown = run("eval", "--history")
    assert len(shown.out.splitlines()) == 3
    listed = json.loads(run("eval", "--history", "--json").out)
    assert [entry["seed"] for entry in listed] == [42, 42]
    assert listed[0]["at"].endswith("+00:00")


def test_json_holds_everything(run: Run, palace: None) -> None:
    done = json.loads(run("eval", "--probes", "3", "--seed", "9", "--mode", "fast", "--json").out)
    assert set(done) == {"kept", "found", "before", "unkept"}
    assert (done["kept"]["seed"], done["found"]["probes"]) == (9, done["kept"]["probes"])


def test_nothing_was_measured_yet(run: Run, palace: None) -> None:
    done = run("eval", "--history")
    assert (done.code, done.out) == (0, "")
    assert "nothing was measured yet" in done.err


def test_wrong_usage_is_said(run: Run, palace: None) -> None:
    assert run("eval", "--probes", "0").code == 2
    wrong = run("eval", "--mode", "psychic")
    assert wrong.code == 2
    assert "psychic" in wrong.err
    assert run("eval", "--wing", "nowhere").code == 1


def test_a_late_index_is_brought_up_to_date_before_it_is_measured(
    run: Run, palace: None, own_home: Path
) -> None:
    root = own_home / ".castle" / "palace"
    with Castle(root) as castle:
        castle.memory_save("\n\n".join(f"Ship {n} carried salt and tar. " * 20 for n in range(40)))
        assert missing(castle._palace(), castle._palace().lexicon) > 20
    done = run("eval", "--probes", "2", "--mode", "fast")
    assert done.code == 0, done.err
    with Castle(root) as castle:
        held = castle._palace()
        assert [missing(held, index) for index in (held.lexicon, held.vectors)] == [0, 0]
