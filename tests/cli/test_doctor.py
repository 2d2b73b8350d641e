from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle import Castle
from castle.doctor import CHECKS, agents
from castle.store.ledger import set_value
from tests.cli.conftest import Outcome, Run


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time."""
    monkeypatch.setattr(agents, "HOOK_SECONDS", 60.0)


def lines(outcome: Outcome) -> dict[str, dict[str, str]]:
    found = json.loads(outcome.out)
    return {line["check"]: line for line in found["lines"]}


def test_all_in_force(run: Run, project: Path) -> None:
    run("mine", str(project))
    shown = run("doctor")
    assert shown.code == 0, shown.out
    assert all(check.name in shown.out for check in CHECKS)
    assert [line.split(":")[0] for line in shown.out.splitlines()] == [check.name for check in CHECKS]
    assert "recall: not checked not in use: hooks.recall is off; no server answers -> castle" in shown.out
    told = run("doctor", "--json")
    assert told.code == 0
    assert json.loads(told.out)["in_force"] is True
    assert list(lines(told)) == [check.name for check in CHECKS]


def test_without_a_palace(run: Run, own_home: Path) -> None:
    told = run("doctor", "--json")
    assert told.code == 1
    found = lines(told)
    assert found["palace"]["status"] == "failed"
    assert "castle init" in found["palace"]["help"]
    assert {found[name]["status"] for name in ("words", "vectors", "saves", "writes")} == {"not checked"}
    assert found["hook"]["status"] == "ok"
    assert not (own_home / ".castle" / "palace").exists()


def test_with_a_damaged_ledger(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    (own_home / ".castle" / "palace" / "castle.db").write_bytes(b"not a database" * 1000)
    told = run("doctor", "--json")
    assert told.code == 1
    assert lines(told)["palace"]["status"] == "failed"
    assert "Traceback" not in told.err


def test_with_a_newer_schema(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    with Castle(own_home / ".castle" / "palace") as castle, castle._palace().ledger.write() as cx:
        set_value(cx, "schema_version", "99")
    told = run("doctor", "--json")
    assert told.code == 1
    assert "pip install -U" in lines(told)["palace"]["help"]


def test_with_broken_settings(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    (own_home / ".castle" / "castle.yaml").write_text("search_mode: [", encoding="utf-8")
    told = run("doctor", "--json")
    assert told.code == 1
    found = lines(told)
    assert found["settings"]["status"] == "failed"
    assert found["palace"]["status"] == "ok"


def test_what_failed_is_named_with_what_helps(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    (own_home / ".castle" / "palace").chmod(0o755)
    shown = run("doctor")
    assert shown.code == 1
    assert "chmod -R go-rwx" in shown.out
    assert "not in force: 1" in shown.err
