"""A database of the former kind, and a seed file: taken over once, whole, and told."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.clock import parse_iso
from castle.errors import UsageError
from castle.mind.mind import Mind
from castle.mind.seeding import read_seed
from castle.store.mind_facts import change_confidence

TIMES = "created_at TEXT, tags_json TEXT DEFAULT '[]', metadata_json TEXT DEFAULT '{}'"
SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB);
CREATE TABLE working_memory (id TEXT PRIMARY KEY, content TEXT, session_id TEXT, {TIMES});
CREATE TABLE episodic_memory (id TEXT PRIMARY KEY, content TEXT, embedding BLOB, projection_vector BLOB,
  confidence REAL DEFAULT 0, valence REAL DEFAULT 0, consolidation_score REAL DEFAULT 0,
  was_in_wm INTEGER DEFAULT 0, session_id TEXT, task_id TEXT, event_at TEXT, valid_until TEXT,
  invalidated_at TEXT, source_refs_json TEXT, {TIMES});
CREATE TABLE semantic_memory (id TEXT PRIMARY KEY, content TEXT, embedding BLOB, confidence REAL,
  lifecycle TEXT, falsifiable_condition TEXT, invalidated_at TEXT, source_refs_json TEXT,
  updated_at TEXT, {TIMES});
CREATE TABLE procedural_memory (id TEXT PRIMARY KEY, template_content TEXT, trigger_condition TEXT,
  condition_embedding BLOB, activation_weight REAL, success_count INTEGER, failure_count INTEGER,
  last_triggered_at TEXT, last_outcome_at TEXT, lifecycle TEXT, task_type TEXT, source_episode_ids TEXT,
  updated_at TEXT, {TIMES});
CREATE TABLE graph_edges (source_id TEXT, target_id TEXT, weight REAL, relation_type TEXT, created_at TEXT,
  last_traversed_at TEXT);
CREATE TABLE cold_storage (id TEXT PRIMARY KEY, original_id TEXT, content TEXT, summary TEXT,
  original_type TEXT, compressed_at TEXT, retrieval_count INTEGER, score_at_archive REAL);
CREATE TABLE creative_pool (id TEXT PRIMARY KEY, hypothesis_text TEXT, source_seed_ids TEXT,
  source_node_ids TEXT, confidence REAL, status TEXT, push_count INTEGER, ignore_count INTEGER,
  topic_tags TEXT, last_pushed_at TEXT, created_at TEXT, seed_content TEXT, concept_pair TEXT,
  stability_count INTEGER, metadata_json TEXT);
CREATE TABLE preference_candidates (id TEXT PRIMARY KEY, preference_text TEXT, preference_type TEXT,
  confidence REAL, source_episode_ids TEXT, signal_strength REAL, status TEXT, conflict_with TEXT,
  falsifiable_condition TEXT, trigger_context TEXT, lifecycle TEXT, push_count INTEGER, ignore_count INTEGER,
  last_pushed_at TEXT, created_at TEXT, updated_at TEXT, metadata_json TEXT);
"""
AT = "2026-06-01T10:00:00+00:00"


DATELESS = ("graph_edges", "cold_storage")
KNOWN = {"reflection": True, "outcome": "failure"}
OVER = {"expire_reason": "old", "_forget_candidate_count": 2}
BEFORE: dict[str, Any] = {"weight": 0.7, "relation_type": "part_of"}
TASTE = {"preference_text": "Prefers oak", "preference_type": "tool_choice", "confidence": 0.7}

ROWS: dict[str, list[dict[str, Any]]] = {
    "episodic_memory": [
        {
            "id": "e1",
            "content": "The keel was laid",
            "valence": 0.4,
            "session_id": "s",
            "tags_json": ["keel"],
        },
        {"id": "e2", "content": "[Self-Reflection] too hasty", "metadata_json": KNOWN},
        {"id": "e3", "content": "It was over", "invalidated_at": AT, "metadata_json": OVER},
        {"id": "e4", "content": "  "},
    ],
    "cold_storage": [
        {"id": "c1", "original_id": "e9", "content": "A cold night at sea", "compressed_at": AT},
    ],
    "semantic_memory": [
        {
            "id": "f1",
            "content": "Oak lasts",
            "confidence": 0.9,
            "source_refs_json": ["e1", "zz"],
            "falsifiable_condition": {"field": "wood", "operator": "!=", "value": "oak"},
        },
        {
            "id": "f2",
            "content": "[Pattern] keels come first",
            "confidence": 0.35,
            "source_refs_json": ["e1"],
        },
        {
            "id": "f4",
            "content": "[Pattern] Recurring: ",
            "confidence": 0.35,
        },
        {
            "id": "f3",
            "content": "Oak lasts",
            "confidence": 0.2,
            "falsifiable_condition": {"field": "wood", "operator": "sings"},
        },
    ],
    "procedural_memory": [
        {
            "id": "p1",
            "template_content": "Caulk the seams",
            "trigger_condition": "leak",
            "activation_weight": 0.8,
            "success_count": 4,
            "failure_count": 1,
            "source_episode_ids": ["e1"],
        }
    ],
    "graph_edges": [
        {"source_id": "f1", "target_id": "e1", **BEFORE},
        {"source_id": "f1", "target_id": "ghost", **BEFORE},
    ],
    "creative_pool": [
        {
            "id": "h1",
            "hypothesis_text": "Keels are like spines",
            "source_seed_ids": ["f1"],
            "confidence": 0.24,
            "status": "pending",
            "concept_pair": {"rationale": "both bear"},
        }
    ],
    "preference_candidates": [{"id": id_, "status": "confirmed", **TASTE} for id_ in ("q1", "q2")],
    "working_memory": [{"id": "w1", "content": "now", "session_id": "s"}],
}


def put(cx: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    stored = {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in values.items()}
    marks = ", ".join("?" for _ in stored)
    cx.execute(f"INSERT INTO {table} ({', '.join(stored)}) VALUES ({marks})", tuple(stored.values()))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "cell_mem.db"
    with closing(sqlite3.connect(path)) as cx:
        cx.executescript(SCHEMA)
        for table, rows in ROWS.items():
            for row in rows:
                put(cx, table, {"created_at": AT, **row} if table not in DATELESS else row)
        cx.commit()
    return path


def test_everything_comes_once_and_is_known_by_its_old_id(mind: Mind, database: Path) -> None:
    before = database.read_bytes()
    told = mind.import_database(database)
    assert dict(told.added) == {
        "episodes": 3, "facts": 3, "procedures": 1, "reflections": 1, "hypotheses": 1, "preferences": 1,
        "edges": 1,
    }  # fmt: skip
    assert dict(told.dropped) == {
        "episodic_memory": 1, "conditions": 1, "edges": 1, "working_memory": 1, "facts": 1,
    }  # fmt: skip
    again = mind.import_database(database)
    assert dict(again.added) == {}
    assert again.known["facts"] == 3
    assert database.read_bytes() == before

    episode, _ = mind.get("e1")
    assert (episode.content, episode.valence, episode.session_id) == ("The keel was laid", 0.4, "s")
    assert (episode.tags, episode.metadata["created_at"]) == (("keel",), AT)
    assert parse_iso(episode.event_at) == parse_iso(AT)
    assert (mind.get("e9")[0].state, mind.get("e9")[0].content) == ("cold", "A cold night at sea")
    assert mind.get("e3")[0].expired
    assert "_forget_candidate_count" not in mind.get("e3")[0].metadata
    fact, _ = mind.get("f1")
    assert (fact.confidence, fact.origin, fact.source_references) == (0.9, "import", (episode.id,))
    assert fact.falsifiable_condition is not None
    assert mind.get("f3")[0].id == fact.id
    pattern, _ = mind.get("f2")
    assert (pattern.content, pattern.origin, pattern.unsupported) == ("keels come first", "pattern", False)
    assert pattern.drawer_ids == (episode.id,)
    procedure, _ = mind.get("p1")
    assert (procedure.metadata["activation_weight"], procedure.metadata["success_count"]) == (0.8, 4)
    assert [edge.id for edge in mind.related("f1") if edge.origin == "import"] == [episode.id]
    assert [memory.id for memory in mind.recall("keel laid").memories][0] == episode.id
    assert "hasty" not in repr(mind.recall("hasty").memories)


def test_a_row_that_is_damaged_stops_no_other(mind: Mind, database: Path) -> None:
    with closing(sqlite3.connect(database)) as cx:
        for id_, content in (("b1", None), ("b2", b"\xff\xfe")):
            put(cx, "episodic_memory", {"id": id_, "created_at": AT, "content": content})
        put(cx, "episodic_memory", {"id": "b3", "content": "Fog", "valence": float("inf"), "created_at": "?"})
        put(cx, "episodic_memory", {"id": "b4", "content": "Rain", "valence": "wet", "metadata_json": "{["})
        cx.execute("INSERT INTO episodic_memory (id, content) VALUES ('b5', CAST(X'68ff' AS TEXT))")
        put(cx, "semantic_memory", {"id": "b6", "content": "Ice floats", "confidence": "sure"})
        counts = {"activation_weight": float("inf"), "success_count": -4, "failure_count": "many"}
        put(cx, "procedural_memory", {"id": "b7", "template_content": "Row home", **counts})
        cx.commit()
    told = mind.import_database(database)
    assert {"episodic_memory b1: content is no text", "episodic_memory b2: content is no text"} <= {
        *told.warnings
    }
    assert told.dropped["episodic_memory"] == 3
    assert [mind.get(id_)[0].content for id_ in ("b3", "b4", "b5")] == ["Fog", "Rain", "h\ufffd"]
    assert (mind.get("b4")[0].valence, mind.get("b6")[0].confidence) == (0.0, 0.0)
    weighed = mind.get("b7")[0].metadata
    assert [weighed[k] for k in ("activation_weight", "success_count", "failure_count")] == [0.5, 0, 0]
    assert "edge:f1:ghost:part_of: one end is not known" in told.warnings


@pytest.mark.parametrize(("broken", "id_"), [("expire", "e3"), ("set_state", "e9")])
def test_a_row_comes_whole_or_not_at_all(
    mind: Mind, database: Path, monkeypatch: pytest.MonkeyPatch, broken: str, id_: str
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"castle.mind.importing.{broken}", killed)
        with pytest.raises(KeyboardInterrupt):
            mind.import_database(database)
    mind.import_database(database)
    memory, _ = mind.get(id_)
    assert memory.expired if broken == "expire" else memory.state == "cold"


def test_what_is_no_such_database_is_refused(mind: Mind, tmp_path: Path) -> None:
    text = tmp_path / "x.db"
    text.write_text("no database at all, but long enough to look like one" * 40, encoding="utf-8")
    other = tmp_path / "y.db"
    with closing(sqlite3.connect(other)) as cx:
        cx.execute("CREATE TABLE t (a)")
    for path in (text, other, tmp_path / "absent.db"):
        with pytest.raises(UsageError):
            mind.import_database(path)


def test_a_seed_file_is_believed_once_and_followed(mind: Mind, tmp_path: Path) -> None:
    path = tmp_path / "seed.json"
    entries: list[dict[str, Any]] = [
        {"content": "Water boils at 100 °C", "confidence": 0.9, "tags": ["physics"], "id": "water"},
        {"content": "港は六時に開く"},
        {"content": "", "confidence": 0.5},
        {"content": "x", "confidence": 3},
        {"content": "y", "falsifiable_condition": {"field": "a", "operator": "sings"}},
        {"content": "z", "source_references": ["nobody"]},
    ]
    path.write_text(json.dumps({"seed_knowledge": entries}), encoding="utf-8")
    done = mind.seed(read_seed(path))
    assert (done.added, done.updated, done.unchanged, len(done.warnings)) == (2, 0, 0, 4)
    done = mind.seed(read_seed(path))
    assert (done.added, done.updated, done.unchanged) == (0, 0, 2)
    entries[0] |= {"content": "Water boils at 99.97 °C"}
    done = mind.seed({"seed_knowledge": entries[:1]})
    assert (done.added, done.updated) == (0, 1)
    (fact,) = mind.recall("water boils", {"memory_type": "semantic", "top_k": 1}).memories
    assert (fact.content, fact.origin, fact.tags) == ("Water boils at 99.97 °C", "seed", ("physics",))
    wrongs: list[object] = [[], {"seeds": []}, {"seed_knowledge": "x"}]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="seed_knowledge"):
            mind.seed(wrong)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="JSON"):
        read_seed(path)


def test_the_same_seed_file_raises_no_belief_that_was_lowered(mind: Mind) -> None:
    entry = {"content": "The bridge is open", "confidence": 0.45}
    mind.seed({"seed_knowledge": [entry]})
    (fact,) = mind.recall("bridge", {"memory_type": "semantic"}).memories
    with mind.palace.ledger.write() as cx:
        change_confidence(cx, fact.id, -0.2, reason="it was closed", actor="ann", now=1)
    done = mind.seed({"seed_knowledge": [entry]})
    assert (done.unchanged, mind.get(fact.id)[0].confidence) == (1, 0.25)
    done = mind.seed({"seed_knowledge": [{**entry, "confidence": 0.4}]})
    assert (done.updated, mind.get(fact.id)[0].confidence) == (1, 0.4)
    assert mind.seed({"seed_knowledge": [{**entry, "confidence": 0.4}]}).unchanged == 1


def test_pieces_of_a_turn_that_was_mined_are_that_turn(mind: Mind, database: Path, tmp_path: Path) -> None:
    turn = {"type": "turn", "session_id": "s", "turn_id": "t7", "user_message": "Where is the keel?"}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(turn) + "\n", encoding="utf-8")
    with Castle(mind.palace.root, embedder="fake") as castle:
        castle.mine_conversations(path)
    piece = {"turn_id": "t7", "chunk_index": 0, "total_chunks": 1}
    with closing(sqlite3.connect(database)) as cx:
        said = {"content": "User: Where is the keel?", "session_id": "s", "metadata_json": piece}
        put(cx, "episodic_memory", {"id": "e7", "created_at": AT, **said})
        cx.commit()
    told = mind.import_database(database)
    assert (told.added["episodes"], told.known["episodes"]) == (3, 1)
    assert mind.get("e7")[0].content == "Where is the keel?"
