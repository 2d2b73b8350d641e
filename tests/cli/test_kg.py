from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle.cli.kg import app
from castle.service import Castle
from tests.cli.conftest import Run


@pytest.fixture
def palace(run: Run, project: Path) -> Path:
    """A palace that holds the small project."""
    assert run("mine", str(project)).code == 0
    return project


def test_without_a_palace_the_graph_says_how_to_make_one(run: Run) -> None:
    outcome = run("kg", "stats")
    assert outcome.code == 1
    assert "no palace at" in outcome.err
    assert run("check").code == 1


def test_a_fact_is_added_asked_for_ended_and_kept(run: Run, palace: Path) -> None:
    added = run("kg", "add", "Max", "works_at", "Acme", "--valid-from", "2024-01-01")
    assert added.out.startswith("added: Max works_at Acme, from 2024-01-01 (")
    assert run("kg", "add", "Max", "works_at", "Acme").out.startswith("already known: ")
    assert run("kg", "invalidate", "Max", "works_at", "Acme", "--ended", "2025-05-02").out.startswith(
        "ended: Max works_at Acme, from 2024-01-01 to 2025-05-02"
    )
    assert "Acme" in run("kg", "query", "Max", "--as-of", "2025-05-01").out
    nothing = run("kg", "query", "Max", "--as-of", "2025-05-02")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no facts\n")
    assert "ended" in run("kg", "query", "max").out


def test_json_has_times_with_offset_and_the_words_that_were_given(run: Run, palace: Path) -> None:
    with Castle() as service:
        drawer = service.list_drawers().drawers[0].id
    run(
        *("kg", "add", "Max", "works at", "Acme", "--confidence", "0.7", "--source", "a talk"),
        *("--drawer", drawer[:10], "--valid-from", "2024-01-01T00:30+02:00", "--valid-to", "2030-01-01"),
    )
    answer = json.loads(run("kg", "query", "Acme", "--direction", "incoming", "--json").out)
    assert (answer["entity"], answer["total"], answer["hidden"]) == ("Acme", 1, 0)
    (fact,) = answer["facts"]
    assert fact["valid_from"] == "2023-12-31T22:30:00.000000+00:00"
    assert fact["valid_from_text"] == "2024-01-01T00:30+02:00"
    assert fact["valid_to"] == "2030-01-01T00:00:00.000000+00:00"
    assert (fact["predicate"], fact["direction"], fact["confidence"]) == ("works_at", "incoming", 0.7)
    assert fact["recorded_at"].endswith("+00:00")
    assert fact["evidence"][0]["drawer"] == drawer
    assert fact["evidence"][0]["source"] == "a talk"
    assert json.loads(run("kg", "query", "Acme", "--direction", "outgoing", "--json").out)["facts"] == []


def test_superseding_and_taking_back(run: Run, palace: Path) -> None:
    run("kg", "add", "Max", "lives_in", "Rome")
    lines = run("kg", "supersede", "Max", "lives_in", "Rome", "Oslo", "--at", "2025-01-01").out.splitlines()
    assert lines[0].startswith("ended: Max lives_in Rome, until 2025-01-01")
    assert lines[1].startswith("added: Max lives_in Oslo, from 2025-01-01")
    changed = json.loads(run("kg", "supersede", "Max", "lives_in", "Oslo", "Bern", "--json").out)
    assert changed["ended"]["valid_to"] == changed["added"]["fact"]["valid_from"]
    assert run("kg", "retract", "Max", "lives_in", "Bern").out.startswith("taken back: Max lives_in Bern")
    then = changed["added"]["fact"]["recorded_at"]
    assert "Bern" in run("kg", "query", "Max", "--as-recorded", then).out
    assert "Bern" not in run("kg", "query", "Max").out


def test_a_timeline_is_paged_and_says_what_is_left(run: Run, palace: Path) -> None:
    for day in range(1, 6):
        run("kg", "add", "log", "has", f"entry {day}", "--valid-from", f"2026-01-0{day}")
    page = run("kg", "timeline", "log", "--limit", "2", "--offset", "1")
    assert ["entry 2" in page.out, "entry 3" in page.out, "entry 4" in page.out] == [True, True, False]
    assert page.err == "2 of 5 facts; go on with --offset 3\n"
    everything = json.loads(run("kg", "timeline", "--json").out)
    assert [fact["object"] for fact in everything["facts"]] == [f"entry {day}" for day in range(1, 6)]


def test_stats_count(run: Run, palace: Path) -> None:
    run("kg", "add", "Max", "knows", "Anna")
    numbers = json.loads(run("kg", "stats", "--json").out)
    assert (numbers["entities"], numbers["facts"], numbers["predicates"]) == (2, 1, {"knows": 1})
    assert "knows" in run("kg", "stats").out


def test_facts_of_forgotten_drawers_are_hidden_and_counted(run: Run, palace: Path) -> None:
    with Castle() as service:
        drawer = service.list_drawers().drawers[0].id
    run("kg", "add", "Max", "knows", "Eve", "--drawer", drawer)
    run("forget", drawer)
    hidden = run("kg", "query", "Max")
    assert "Eve" not in hidden.out
    assert "1 fact is hidden, because every drawer that says so is forgotten" in hidden.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("add", "Max", "knows", "Anna", "--valid-from", "2026-13-01"), 2, "is no ISO date or time"),
        (("add", "Max", "knows", "Anna", "--valid-form", "2026-01-01"), 2, "--valid-form"),
        (("add", "Max", "knows", "Anna", "--confidence", "2"), 2, "between 0 and 1"),
        (("add", "Max", "knows", " "), 2, "the object is blank"),
        (("add", "Max", "knows", "Anna", "--drawer", "abcdef0"), 1, "no drawer abcdef0"),
        (("query", "Zoe"), 1, "the graph knows nothing of Zoe"),
        (("query", "Zoe", "--direction", "up"), 2, "--direction"),
        (("invalidate", "Max", "knows", "Anna"), 1, "the graph holds no fact Max knows Anna"),
        (("timeline", "--limit", "0"), 2, "--limit"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    run: Run, palace: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = run("kg", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_check_reports_a_contradiction_and_changes_nothing(run: Run, palace: Path) -> None:
    sound = run("check")
    assert (sound.code, sound.out, sound.err) == (0, "", "nothing doubtful in the graph\n")
    run("kg", "add", "Max", "works_at", "Acme")
    run("kg", "add", "Max", "works_at", "Initech")
    before = run("kg", "timeline", "--json").out
    doubtful = run("check", "--json")
    assert doubtful.code == 1
    (issue,) = json.loads(doubtful.out)
    assert issue["kind"] == "contradiction"
    assert "Max works_at Acme" in issue["detail"]
    assert len(issue["about"]) == 2
    assert run("check").code == 1
    assert run("kg", "timeline", "--json").out == before


def test_every_command_of_the_graph_prints_json_on_request() -> None:
    commands = app.registered_commands
    names = {command.callback.__name__ for command in commands if command.callback}
    assert names == {"add", "query", "invalidate", "retract", "supersede", "timeline", "stats"}
    for command in commands:
        assert command.callback is not None
        assert "as_json" in command.callback.__annotations__
