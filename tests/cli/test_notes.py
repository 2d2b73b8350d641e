"""``castle add``, ``update`` and ``check-duplicate`` from the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def reads(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_a_note_is_added_changed_and_found(run: Run, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ("--wing", "shop", "--room", "decisions")
    added = run("add", "We chose GraphQL.", *place, "--by", "me")
    assert (added.code, added.err.startswith("filed in shop / decisions, sha256 ")) == (0, True)
    id = added.out.strip()
    again = json.loads(run("add", "We chose GraphQL.", *place, "--json").out)
    assert (again["id"], again["ids"], again["reason"]) == (id, [id], "already_exists")
    assert "filed already" in run("add", "We chose GraphQL.", *place).err
    reads(monkeypatch, b"We chose REST.\r\n")
    changed = json.loads(run("update", id[:10], "-", "--expected-sha256", again["sha256"], "--json").out)
    assert (changed["previous"], changed["revision"]) == (id, 2)
    assert json.loads(run("get", changed["id"], "--json").out)[0]["text"] == "We chose REST.\r\n"
    assert json.loads(run("search", "REST", "--json").out)["hits"][0]["id"] == changed["id"]
    moved = run("update", changed["id"], "--room", "old")
    assert (moved.code, moved.out.strip()) == (0, changed["id"])
    assert "shop / old" in moved.err
    assert "nothing to change" in run("update", changed["id"]).err
    late = run("update", id, "too late")
    assert (late.code, "superseded" in late.err, late.err.count("\n")) == (1, True, 1)


def test_standard_input_is_taken_as_it_is(run: Run, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "zwei Zeilen\r\n\tund ein Ende "
    reads(monkeypatch, text.encode())
    added = json.loads(run("add", "-", "--wing", "w", "--room", "r", "--source-file", "a.txt", "--json").out)
    assert json.loads(run("get", added["id"], "--json").out)[0]["text"] == text
    reads(monkeypatch, text.encode())
    assert json.loads(run("check-duplicate", "-", "--json").out)["is_duplicate"]
    for command in (
        ("add", "-", "--wing", "w", "--room", "r"),
        ("update", added["id"], "-"),
        ("check-duplicate", "-"),
    ):
        reads(monkeypatch, b"ab\xff")
        refused = run(*command)
        assert (refused.code, "byte 2" in refused.err) == (2, True)


def test_duplicates_are_shown(run: Run, own_home: Path) -> None:
    run("add", "The lantern hangs by the door.", "--wing", "w", "--room", "r")
    found = run("check-duplicate", "The lantern hangs by the door.")
    assert (found.code, "1.00" in found.out, "filed already" in found.err) == (0, True, True)
    other = run("check-duplicate", "zebra violins", "--threshold", "0.99")
    assert (other.code, other.out, "not filed yet" in other.err) == (0, "", True)
    assert run("check-duplicate", "x", "--threshold", "2").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "", "--wing", "w", "--room", "r"),
        ("add", "text", "--wing", "../w", "--room", "r"),
        ("add", "text", "--wing", "w"),
        ("add", "a\udcff", "--wing", "w", "--room", "r"),
    ],
)
def test_what_is_no_note_is_a_wrong_call(run: Run, own_home: Path, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2


def test_text_of_a_file_is_changed_in_the_file(run: Run, project: Path) -> None:
    run("mine", str(project))
    id = json.loads(run("list", "--json").out)["drawers"][0]["id"]
    refused = run("update", id, "other words")
    assert refused.code == 1
    assert str(project) in refused.err
    assert refused.err.count("\n") == 1
