from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.mine.conftest import write


@pytest.fixture
def palace(run: Run, project: Path) -> Path:
    """A palace that holds the small project."""
    write(project, {"log.md": "Marta Ruiz closed the harbour. Will Marta Ruiz open it?\n"})
    assert run("mine", str(project)).code == 0
    return project


def test_without_a_palace_the_registry_says_how_to_make_one(run: Run) -> None:
    outcome = run("entities", "list")
    assert (outcome.code, outcome.out) == (1, "")
    assert "no palace at" in outcome.err


def test_adding_naming_forgetting_and_bringing_back(run: Run, palace: Path) -> None:
    empty = run("entities", "list")
    assert (empty.code, empty.out) == (0, "")
    assert "castle entities add" in empty.err
    added = run("entities", "add", "Marta Ruiz", "--kind", "person", "--alias", "mruiz", "--alias", "MR")
    assert added.out == "registered: Marta Ruiz, person, also MR, mruiz, mentioned in 1 drawer\n"
    assert run("entities", "alias", "mruiz", "Marta").out.startswith(
        "registered: Marta Ruiz, person, also Marta, MR, mruiz"
    )
    listed = run("entities", "list", "--kind", "person")
    assert "Marta Ruiz" in listed.out and "1.00" in listed.out
    assert run("entities", "list", "--kind", "topic").out == ""
    assert run("entities", "forget", "marta").out.startswith("forgotten: Marta Ruiz")
    assert "Marta" not in run("entities", "list").out
    assert "Marta Ruiz" in run("entities", "list", "--forgotten").out
    assert run("entities", "add", "Marta Ruiz", "--kind", "person").code == 0
    assert "Marta Ruiz" in run("entities", "list").out


def test_json_has_times_and_counts(run: Run, palace: Path) -> None:
    added = json.loads(run("entities", "add", "Will", "--kind", "person", "--json").out)
    assert (added["name"], added["ambiguous"], added["mentions"], added["first_seen_at"]) == (
        "Will",
        True,
        0,
        None,
    )
    assert added["added_at"].endswith("+00:00")
    run("entities", "add", "harbour", "--kind", "topic")
    answer = json.loads(run("entities", "list", "--json", "--limit", "1").out)
    assert (answer["total"], answer["left"]) == (2, 0)
    assert [(e["name"], e["mentions"]) for e in answer["entities"]] == [("harbour", 2)]
    assert answer["entities"][0]["first_seen_at"].endswith("+00:00")
    assert json.loads(run("entities", "relink", "--json").out) == {"read": 0, "found": 0, "left": 0}


def test_pages(run: Run, palace: Path) -> None:
    for name in ("Anna", "Bert", "Cleo"):
        run("entities", "add", name, "--kind", "person")
    page = run("entities", "list", "--limit", "2")
    assert "go on with --offset 2" in page.err
    assert "Cleo" in run("entities", "list", "--limit", "2", "--offset", "2").out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("forget", "Nobody"), 1, "castle entities list"),
        (("alias", "Nobody", "No"), 1, "no entity Nobody"),
        (("add", "x", "--kind", "person"), 2, "too short"),
        (("add", "Marta", "--kind", "robot"), 2, "robot"),
        (("add", "Marta"), 2, "--kind"),
    ],
)
def test_what_cannot_be_done(
    run: Run, palace: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    outcome = run("entities", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert says in outcome.err
