"""``castle check-env``: what it finds in a project, what expires, and what it shows of that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle.mind.conditions.verifying import attach
from castle.mind.environment import collect
from castle.service import Castle
from castle.store.mind_facts import add_fact, get_fact
from tests.cli.conftest import Run

CONDITION = {"field": "package.json", "operator": "version_changed", "value": "react", "level": "major"}


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no tools: they are the machine's."""
    monkeypatch.setattr(collect, "tool_versions", lambda project, present: {})


def write(project: Path, react: str) -> None:
    manifest = {"dependencies": {"react": react}}
    (project / "package.json").write_text(json.dumps(manifest), encoding="utf-8")


def believe(wing: str) -> str:
    with Castle(embedder="fake") as castle:
        palace = castle._palace()
        with palace.ledger.write() as cx:
            now = palace.ledger.clock()
            fact = add_fact(cx, "It is so.", confidence=1, origin="user", actor="t", now=now, wing=wing)
            attach(palace, cx, "fact", fact.id, CONDITION, wing, now)
    return fact.id


def expired(id_: str) -> bool:
    with Castle() as castle, castle._palace().ledger.read() as cx:
        return get_fact(cx, id_).expired


def test_a_lock_file_that_changes_expires_what_depends_on_it(run: Run, project: Path) -> None:
    with Castle(embedder="fake") as castle:
        castle._palace(create=True)
    write(project, "^18.2.0")
    first = run("check-env", str(project))
    assert first.code == 0
    assert "package.json" in first.out
    assert "0 conditions of wing myapp checked" in first.err
    id_ = believe("myapp")
    write(project, "^19.0.0")
    dry = run("check-env", str(project), "--dry-run")
    assert f"{id_}  fact  met        would expire" in dry.out
    assert not expired(id_)
    done = json.loads(run("check-env", str(project), "--json").out)
    assert done["wing"] == "myapp"
    assert done["changed"] == ["package.json"]
    (entry,) = done["entries"]
    assert (entry["id"], entry["result"], entry["expired"]) == (id_, "met", True)
    assert "was ^18.2.0, is ^19.0.0" in entry["reason"]
    assert done["environment"]["package.json"] == {"react": "^19.0.0"}
    assert expired(id_)
    last = run("check-env", str(project))
    assert last.out == "nothing has changed since the last check\n"


def test_another_wing_and_what_cannot_be_read(run: Run, project: Path) -> None:
    with Castle(embedder="fake") as castle:
        castle._palace(create=True)
    (project / "package.json").write_text("{", encoding="utf-8")
    found = run("check-env", str(project), "--wing", "other")
    assert found.code == 0
    assert "package.json cannot be read" in found.err
    assert "of wing other checked" in found.err
    wrong = run("check-env", str(project / "package.json"))
    assert wrong.code == 2
    assert "is not a directory" in wrong.err
