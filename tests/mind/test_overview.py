"""Every example of the documented Python API, with the answers that it promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from castle.mind import MemorySystem


@pytest.fixture
def ms(tmp_path: Path) -> Iterator[MemorySystem]:
    with MemorySystem(tmp_path / "cell_mem.db", embedding_model_name="fake") as system:
        assert system.wait_ready()
        yield system


def test_the_examples(ms: MemorySystem) -> None:
    fact = ms.save("User prefers dark theme", memory_type="semantic", confidence=0.9)
    episode = ms.save("Fixed the login bug with OAuth", memory_type="episodic")
    procedure = ms.save(
        "When encountering CORS errors, check server middleware first",
        memory_type="procedural",
        trigger_condition="CORS error debugging",
    )
    for saved, layer in ((fact, "semantic"), (episode, "episodic"), (procedure, "procedural")):
        assert saved["status"] == "ok"
        assert saved["data"]["memory_type"] == layer
    assert fact["data"]["lifecycle"] == "locked"

    results = ms.recall("How to debug CORS?")
    assert results["status"] == "ok"
    assert results["data"][0]["id"] == procedure["data"]["id"]
    assert results["count"] == len(results["data"])
    assert results["fallback_fts5"] is False
    assert [one["id"] for one in results["procedures"]] == [procedure["data"]["id"]]

    joined = ms.associate(fact["data"]["id"], episode["data"]["id"], weight=0.8, relation="related_to")
    assert joined["data"]["relation_type"] == "associated_with"

    status = ms.status()
    assert {name: layer["entry_count"] for name, layer in status["layers"].items()} == {
        "working": 0,
        "episodic": 1,
        "semantic": 1,
        "procedural": 1,
    }
    assert status["graph"] == {"node_count": 2, "edge_count": 1}
    assert status["health"] == "healthy"
    for part in ("consolidation", "creative_pool", "llm", "reflection", "preferences"):
        assert part in status


def test_what_needs_more_answers_and_raises_nothing(ms: MemorySystem) -> None:
    answers: list[dict[str, Any]] = [
        ms.reflect(task="Fix CORS bug", outcome="Failure", dimensions="all"),
        ms.replay(theme_text="frontend debugging"),
        ms.record_hypothesis_feedback("hyp_abc123", confirmed=True),
    ]
    for answer in answers:
        assert answer["status"] in ("ok", "error")
        assert answer["status"] == "ok" or answer["error"]
    assert ms.record_hypothesis_feedback("hyp_abc123", confirmed=True)["status"] == "error"


def test_an_environment_that_changes_expires_what_depends_on_it(ms: MemorySystem) -> None:
    ms.check_environment({"node_version": "18", "react_version": "18.2"})
    condition = {"field": "react_version", "operator": "value_changed"}
    fact = ms.save("React renders on the client", memory_type="semantic", falsifiable_condition=condition)
    changed = ms.check_environment({"node_version": "18", "react_version": "19.0"})
    assert changed["data"]["triggered"] is True
    assert [one["entry_id"] for one in changed["data"]["triggered_entries"]] == [fact["data"]["id"]]
    assert ms.recall("React renders")["data"] == []
    again = ms.recall("React renders", include_expired=True)
    assert [one["expired"] for one in again["data"]] == [True]


def test_a_mistake_is_an_answer(ms: MemorySystem) -> None:
    assert "is none of working" in ms.save("x", memory_type="dream")["error"]
    assert "has no option 'colour'" in ms.save("x", colour="red")["error"]
    assert "number between 0 and 1" in ms.save("x", memory_type="semantic", confidence=7)["error"]
    assert ms.recall("  ")["status"] == "error"
    assert ms.get("fct_0000000000000000")["status"] == "error"
    nothing: Any = None
    assert ms.get(nothing)["error"] == "memory_id is a text, not NoneType"
    assert ms.recall(nothing)["error"] == "query is a text, not NoneType"
    assert ms.save(nothing)["error"] == "content is a text, not NoneType"
    assert ms.session_end(session_id=nothing)["status"] == "error"


def test_a_palace_is_where_the_database_was_named_and_keeps_what_it_knows(tmp_path: Path) -> None:
    for _ in range(2):
        with MemorySystem(tmp_path / "agent.db", embedding_model_name="fake") as system:
            system.save("The ferry leaves at noon")
    with MemorySystem(tmp_path / "agent.db", embedding_model_name="fake") as system:
        assert system.status()["layers"]["episodic"]["entry_count"] == 1
    assert (tmp_path / "agent.palace" / "castle.db").is_file()
