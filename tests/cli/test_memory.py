"""``castle memory`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from castle.errors import ModelError
from tests.cli.conftest import Outcome, Run


@pytest.fixture
def told(run: Run, own_home: Path) -> Any:
    """A function that runs a command of the mind with --json and returns what it printed."""

    def call(*arguments: str) -> Any:
        done: Outcome = run("memory", *arguments, "--json")
        assert done.code in (0, 3), done.err
        return json.loads(done.out)

    return call


def test_words_are_kept_recalled_forgotten_and_restored(run: Run, own_home: Path, told: Any) -> None:
    saved = run("memory", "save", "The harbour opens at six", "-t", "semantic", "--confidence", "0.6")
    assert (saved.code, saved.err) == (0, "")
    id_ = saved.out.strip()
    again = run("memory", "save", "the harbour opens at six.", "-t", "semantic", "--confidence", "0.6")
    assert (again.out.strip(), "in mind before" in again.err) == (id_, True)
    shown = run("memory", "recall", "harbour")
    assert id_ in shown.out
    assert "semi_stable 0.65" in shown.out
    assert run("memory", "forget", id_, "--reason", "moved").out.strip() == f"{id_} archived"
    empty = run("memory", "recall", "harbour")
    assert (empty.out, "1 more: cold" in empty.err) == ("", True)
    assert id_ in run("memory", "cold", "harbour").out
    assert run("memory", "restore", id_).out.strip() == f"{id_} restored"
    got = run("memory", "get", id_)
    assert got.out == "The harbour opens at six\n"
    assert "state: active to cold (moved, " in got.err
    assert told("recall", "harbour")["data"][0]["id"] == id_


def test_options_are_json_or_words(run: Run, own_home: Path, told: Any) -> None:
    saved = told("save", "We sailed", "-o", "valence=0.5", "-o", "task_id=trip", "--tag", "sea")
    assert (saved["valence"], saved["task_id"], saved["tags"]) == (0.5, "trip", ["sea"])
    wrong = run("memory", "save", "x", "-o", "valence")
    assert (wrong.code, "NAME=VALUE" in wrong.err) == (2, True)
    assert run("memory", "save", "x", "-o", "colour=red").code == 2
    assert run("memory", "save", " ").code == 2


def test_procedures_sessions_and_associations(run: Run, own_home: Path, told: Any) -> None:
    way = told("save", "Restart it", "-t", "procedural", "--trigger", "gateway timeout")["id"]
    assert told("match", "gateway timeout")[0]["template"]["id"] == way
    assert run("memory", "outcome", way, "--worked").out.strip() == "0.525"
    item = told("save", "look at the log", "-t", "working", "--session", "s")["id"]
    ended = told("session-end", "s", "--completed", item)
    assert (ended["completed"], len(ended["episodes"])) == (1, 1)
    joined = told("associate", way, ended["episodes"][0], "--relation", "causes", "--weight", "0.5")
    assert (joined["relation_type"], joined["weight"]) == ("causes", 0.5)
    assert "pinned" in run("memory", "pin", way).out
    refused = run("memory", "forget", way)
    assert (refused.code, "is pinned" in refused.err) == (1, True)
    status = run("memory", "status")
    assert (status.code, "procedural" in status.out, "1 association" in status.err) == (0, True, True)


def test_what_comes_in_and_goes_out(run: Run, own_home: Path, told: Any) -> None:
    seeds = own_home / "seed.json"
    seeds.write_text('{"seed_knowledge": [{"content": "Oak lasts"}, {"content": ""}]}', encoding="utf-8")
    first = run("memory", "seed", str(seeds))
    assert (first.code, first.out) == (3, "1 added, 0 updated, 0 unchanged\n")
    out = own_home / "mind.jsonl"
    assert told("export", str(out))["mem_facts"] == 1
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [line["statement"] for line in lines if line.get("t") == "mem_facts"] == ["Oak lasts"]
    assert run("memory", "export", str(out)).code == 2
    again = run("memory", "import", str(out))
    assert (again.code, "mem_facts" in again.out) == (0, True)
    assert run("memory", "import", str(seeds)).code == 2
    assert run("memory", "import-cellmem", str(seeds)).code == 2
    environment = own_home / "env.json"
    environment.write_text('{"node": "20"}', encoding="utf-8")
    assert told("env", str(environment))["triggered"] is True
    assert told("verify", "--env", str(environment))["total_checked"] == 0
    assert run("memory", "env", str(out)).code == 2


def test_what_no_longer_holds_is_shown_as_expired_and_since_when(run: Run, own_home: Path, told: Any) -> None:
    condition = 'falsifiable_condition={"field": "node", "operator": ">=", "value": "20"}'
    id_ = run("memory", "save", "Node 18 is in use", "-t", "semantic", "-o", condition).out.strip()
    assert run("memory", "forget", id_, "--expire").code == 0
    shown = run("memory", "get", id_).err
    assert f"{id_}: expired, " in shown
    assert '"operator": ">="' in shown
    at = told("get", id_)["invalidated_at"]
    assert f"expired: - to {at}" in shown
    assert "expired" in run("memory", "recall", "node", "--expired").out


def test_reports_are_lines_for_a_person(run: Run, own_home: Path) -> None:
    assert run("memory", "prefs", "--add", "I prefer oak over pine").code == 0
    preferences = run("memory", "prefs").out
    assert "    preference_text: I prefer oak over pine\n" in preferences
    assert "    trigger_context: -\n" in preferences
    assert "{" not in preferences
    status = run("memory", "status").out
    assert "oldest_at -, " in status
    assert "{" not in status
    idle = run("memory", "consolidate", "--dry-run", "--wing", "nowhere")
    assert (idle.code, "there are no episodes yet in wing nowhere" in idle.err) == (0, True)
    assert "ran: no\n" in idle.out


def test_what_is_wrongly_asked_is_told(run: Run, own_home: Path) -> None:
    assert run("memory", "save", "Oak lasts", "-t", "semantic").code == 0
    two = run("memory", "prefs", "--add", "I like oak", "--extract")
    assert (two.code, "--add and --extract ask for different things" in two.err) == (2, True)
    assert run("memory", "prefs").out.endswith("count: 0\n")
    assert run("memory", "pool", "--status", "pending", "--feedback", "hyp_1").code == 2
    for command in ("get", "forget", "session-end"):
        empty = run("memory", command, "")
        assert (empty.code, "is empty" in empty.err) == (2, True)
    assert "there is no wing nowhere" in run("memory", "recall", "oak", "--wing", "nowhere").err


def test_a_recall_that_left_something_out_is_done_in_part(
    run: Run, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("memory", "save", "Oak lasts", "-t", "semantic").code == 0
    assert run("memory", "recall", "oak").code == 0

    def broken(*_: object) -> object:
        raise ModelError("the embedder is broken")

    monkeypatch.setattr("castle.models.fake.FakeEmbedder.embed_query", broken)
    partly = run("memory", "recall", "oak")
    assert (partly.code, "words only: the embedder is broken" in partly.err) == (3, True)
    assert "Oak lasts" in partly.out
