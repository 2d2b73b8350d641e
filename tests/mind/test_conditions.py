"""Conditions of what is believed: attached with a baseline, verified, and what they expire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from castle.errors import NotFoundError, UsageError
from castle.mind.conditions.verifying import attach, check_expression, condition_of, verify
from castle.mind.environment.checking import check_environment
from castle.store.graph import Graph
from castle.store.mind_conditions import KEPT_SNAPSHOTS, get_condition
from castle.store.mind_facts import add_fact, get_fact, link_triple
from castle.store.mind_procedures import add_procedure, get_procedure
from castle.store.mind_rows import history
from castle.store.mind_tables import mem_conditions, mem_env_snapshots
from castle.store.palace import Palace
from castle.store.schema import project_aliases, projects, sources

OLD_NODE = {"field": "node_version", "operator": "<", "value": "20"}


def believe(palace: Palace, expression: object, statement: str = "It is so.", wing: str | None = "w") -> str:
    with palace.ledger.write() as cx:
        now = palace.ledger.clock()
        fact = add_fact(cx, statement, confidence=0.9, origin="user", actor="t", now=now, wing=wing)
        if expression is not None:
            attach(palace, cx, "fact", fact.id, expression, wing, now)
    return fact.id


def check(palace: Palace, environment: dict[str, Any], wing: str | None = "w", **more: Any) -> dict[str, Any]:
    return check_environment(palace, environment, wing=wing, actor="t", **more)


def expired(palace: Palace, id_: str) -> bool:
    with palace.ledger.read() as cx:
        return get_fact(cx, id_).expired


def test_a_wrong_expression_is_refused_before_anything_is_written(palace: Palace) -> None:
    with pytest.raises(UsageError, match="did you mean value_changed"):
        believe(palace, {"field": "a", "operator": "value_change"})
    with palace.ledger.read() as cx:
        assert cx.execute(select(mem_conditions)).all() == []
    assert check_expression({"field": "a", "value": 1}) == {"field": "a", "operator": "==", "value": 1}


def test_a_condition_is_found_again_as_it_was_given(palace: Palace) -> None:
    id_ = believe(palace, OLD_NODE)
    with palace.ledger.read() as cx:
        assert condition_of(cx, "fact", id_) == OLD_NODE
        assert condition_of(cx, "fact", "fct_0000000000000000") is None


def test_what_is_met_expires_the_fact_and_ends_its_triples_at_once(palace: Palace) -> None:
    graph = Graph(palace.ledger, actor="t")
    added = graph.add("site", "runs_on", "node 18")
    id_ = believe(palace, OLD_NODE)
    with palace.ledger.write() as cx:
        link_triple(cx, id_, added.fact.id)
    answer = check(palace, {"node_version": "v18.19.0"})
    entry = answer["triggered_entries"][0]
    assert (entry["entry_id"], entry["action"], entry["expired"]) == (id_, "expire", True)
    assert "18.19.0" in entry["reason"]
    assert expired(palace, id_)
    assert graph.query("site").facts[0].state == "ended"
    with palace.ledger.read() as cx:
        assert any(change.what == "expired" for change in history(cx, "fact", id_))
        stored = get_condition(cx, "fact", id_)
    assert stored is not None
    assert stored.last_result == "met"


def test_nothing_follows_from_what_is_not_known(palace: Palace) -> None:
    id_ = believe(palace, OLD_NODE)
    answer = check(palace, {"python_version": "3.12"})
    assert answer["triggered_entries"] == []
    assert answer["unknown_entries"][0]["result"] == "unknown"
    assert not expired(palace, id_)


def test_a_dry_run_changes_nothing(palace: Palace) -> None:
    id_ = believe(palace, OLD_NODE)
    answer = check(palace, {"node_version": "18"}, dry_run=True)
    assert [entry["expired"] for entry in answer["triggered_entries"]] == [False]
    assert not expired(palace, id_)
    with palace.ledger.read() as cx:
        assert cx.execute(select(mem_env_snapshots)).all() == []
        stored = get_condition(cx, "fact", id_)
        assert stored is not None
        assert stored.last_result == ""


def test_an_expired_fact_is_not_expired_again(palace: Palace) -> None:
    id_ = believe(palace, OLD_NODE)
    check(palace, {"node_version": "18"})
    with palace.ledger.read() as cx:
        first = get_fact(cx, id_)
    assert check(palace, {"node_version": "16"})["entries_checked"] == 0
    with palace.ledger.read() as cx:
        assert get_fact(cx, id_).invalidated_at == first.invalidated_at


def test_a_baseline_is_that_of_the_latest_snapshot_of_the_wing(palace: Palace) -> None:
    check(palace, {"package.json": {"react": "^18.2.0"}})
    id_ = believe(palace, {"field": "package.json", "operator": "version_changed", "value": "react"})
    assert check(palace, {"package.json": {"react": "^18.2.0"}, "x": 1})["triggered_entries"] == []
    assert len(check(palace, {"package.json": {"react": "^19.0.0"}})["triggered_entries"]) == 1
    assert expired(palace, id_)


def test_a_field_that_was_not_known_is_remembered_by_the_first_check(palace: Palace) -> None:
    id_ = believe(palace, {"field": "node_version", "operator": "value_changed"})
    assert check(palace, {"node_version": "20"})["unknown_entries"][0]["result"] == "unknown"
    assert check(palace, {"node_version": "20", "y": 1})["triggered_entries"] == []
    assert len(check(palace, {"node_version": "22"})["triggered_entries"]) == 1
    assert expired(palace, id_)


def test_wings_do_not_see_each_other(palace: Palace) -> None:
    here, there, nowhere = (
        believe(palace, OLD_NODE, f"It is so in {w}.", wing=w) for w in ("w", "other", None)
    )
    assert check(palace, {"node_version": "18"}, wing="other")["entries_checked"] == 1
    assert [expired(palace, id_) for id_ in (here, there, nowhere)] == [False, True, False]
    # The snapshot of one wing is no change in another.
    check(palace, {"node_version": "20"}, wing="w")
    assert check(palace, {"node_version": "18"}, wing="other")["triggered"] is False


def test_changes_are_told_and_a_part_leaves_the_rest_as_it_was(palace: Palace) -> None:
    first = check(palace, {"a": 1, "b": {"c": "2"}})
    assert first["triggered"]
    assert first["changes_detected"]["added_fields"] == ["a", "b"]
    again = check(palace, {"a": 1, "b": {"c": "2"}})
    assert (again["triggered"], again["note"]) == (False, "nothing has changed since the last snapshot")
    part = check(palace, {"a": 2, "d": 1}, merge=True)["changes_detected"]
    assert (part["changed_fields"], part["added_fields"], part["removed_fields"]) == (["a"], ["d"], [])
    whole = check(palace, {"a": 2})["changes_detected"]
    assert whole["removed_fields"] == ["b", "d"]


def test_snapshots_are_kept_for_a_while(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        for i in range(KEPT_SNAPSHOTS):
            values = {"scope": "w", "snapshot_json": f'{{"values":{{"old":{i}}}}}', "sha256": str(i)}
            cx.execute(insert(mem_env_snapshots).values(**values, captured_at=i))
    check(palace, {"a": 1})
    check(palace, {"a": 1}, wing="other")
    with palace.ledger.read() as cx:
        rows = cx.execute(select(mem_env_snapshots).where(mem_env_snapshots.c.scope == "w")).all()
        assert len(rows) == KEPT_SNAPSHOTS
        assert rows[0].sha256 == "1"
        assert len(cx.execute(select(mem_env_snapshots)).all()) == KEPT_SNAPSHOTS + 1


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "not an object with fields"),
        ({str(i): i for i in range(201)}, "200 at most"),
        ({"a": "x" * 10_001}, "10,000 at most"),
        ({"a": {"b": {"c": {"d": 1}}}}, "nested 3 deep at most"),
        ({"a": {1, 2}}, "nothing that JSON has"),
    ],
)
def test_an_environment_is_bounded(palace: Palace, environment: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check(palace, environment)


def test_a_secret_in_an_environment_is_not_kept(palace: Palace) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    check(palace, {"token": f"GITHUB_TOKEN={key}"})
    with palace.ledger.read() as cx:
        assert key not in cx.execute(select(mem_env_snapshots.c.snapshot_json)).scalar_one()


def test_one_entry_is_verified_as_documented(palace: Palace) -> None:
    id_, plain = believe(palace, OLD_NODE), believe(palace, None, "Nothing would change that.")
    holds = verify(palace, id_, {"node_version": "20"}, actor="t")
    assert (holds["verified"], holds["condition_met"], holds["action"]) == (True, False, "none")
    assert verify(palace, plain, {"node_version": "20"}, actor="t")["reason"] == "it has no condition"
    stale = verify(palace, id_, {"node_version": "18"}, actor="t")
    assert (stale["condition_met"], stale["action"], stale["entry_id"]) == (True, "expire", id_)
    assert (stale["expired"], stale["condition"]) == (True, OLD_NODE)
    with pytest.raises(NotFoundError):
        verify(palace, "fct_0123456789abcdef", {"a": 1}, actor="t")


def test_without_an_environment_the_latest_snapshot_is_taken(palace: Palace) -> None:
    id_ = believe(palace, OLD_NODE)
    for entry in (id_, None):
        with pytest.raises(UsageError, match="castle check-env DIR"):
            verify(palace, entry, None, actor="t")
    check(palace, {"node_version": "22"})
    assert verify(palace, id_, None, actor="t")["result"] == "not_met"


def test_all_entries_are_verified_and_expired_unless_it_is_a_dry_run(palace: Palace) -> None:
    stale = believe(palace, OLD_NODE)
    fresh = believe(palace, {"field": "node_version", "operator": "==", "value": "1"}, "Another.")
    believe(palace, {"field": "nowhere", "operator": "==", "value": "1"}, "A third.", wing=None)
    believe(palace, None, "Without.")
    environment = {"node_version": "18"}
    dry = verify(palace, None, environment, dry_run=True, actor="t")
    assert not expired(palace, stale)
    done = verify(palace, None, environment, actor="t")
    for answer in (dry, done):
        assert (answer["total_checked"], answer["still_valid"], answer["no_condition"]) == (3, 1, 1)
        assert [entry["entry_id"] for entry in answer["triggered"]] == [stale]
        assert len(answer["unknown"]) == 1
    assert (expired(palace, stale), expired(palace, fresh)) == (True, False)
    assert verify(palace, None, environment, wing="w", actor="t")["total_checked"] == 1


def test_a_procedure_expires_as_a_fact_does(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        now = palace.ledger.clock()
        way = add_procedure(cx, "Use nvm 18.", origin="user", actor="t", now=now, wing="w")
        attach(palace, cx, "procedure", way.id, OLD_NODE, "w", now)
    check(palace, {"node_version": "18"})
    with palace.ledger.read() as cx:
        assert get_procedure(cx, way.id).invalidated_at is not None


def test_a_condition_that_cannot_be_read_any_more_is_unknown(palace: Palace) -> None:
    id_ = believe(palace, OLD_NODE)
    with palace.ledger.write() as cx:
        cx.execute(update(mem_conditions).values(expression_json='{"field": "a", "operator": "~="}'))
    assert "operator" in check(palace, {"a": 1})["unknown_entries"][0]["reason"]
    assert not expired(palace, id_)


def test_a_file_is_compared_with_what_it_was_when_the_fact_was_stored(palace: Palace, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("one", encoding="utf-8")
    with palace.ledger.write() as cx:
        cx.execute(insert(projects).values(id="p", name="p", created_at=1))
        cx.execute(insert(project_aliases).values(kind="path", value=str(project), project="p"))
        values = {
            "key": "k",
            "kind": "file",
            "project": "p",
            "path": "a",
            "title": "",
            "wing": "w",
            "room": "r",
        }
        cx.execute(insert(sources).values(**values, revision=1, signature=""))
    id_ = believe(palace, {"field": "app.py", "operator": "file_modified"})
    assert verify(palace, id_, None, actor="t")["result"] == "not_met"
    assert check(palace, {"a": 1})["triggered_entries"] == []
    (project / "app.py").write_text("two", encoding="utf-8")
    assert check(palace, {"a": 1}, dry_run=True)["triggered_entries"][0]["entry_id"] == id_
    (project / "app.py").unlink()
    assert verify(palace, id_, None, actor="t")["reason"] == "the file app.py is gone"
    assert expired(palace, id_)
