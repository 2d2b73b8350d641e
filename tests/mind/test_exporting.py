"""What an export holds comes back into another palace, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import UsageError

SESSION: dict[str, object] = {
    "id": "new",
    "platform": "",
    "wing": "w",
    "cwd": "",
    "transcript": "",
    "offsets_json": "{}",
    "started_at": 1,
}


@pytest.fixture
def castle(tmp_path: Path) -> Castle:
    made = Castle(tmp_path / "one", embedder="fake")
    made.memory_save("The deploy failed", "episodic", {"session_id": "s1", "tags": ["deploy"]})
    made.memory_save("Deploys need migrations", "semantic", {"confidence": 0.6})
    made.memory_save("Migrate, then restart", "procedural", {"trigger_condition": "deploying"})
    made.memory_save("watch the deploy", "working", {"session_id": "s1"})
    made.memory_inject_preference("prefers small deploys")
    return made


def test_a_mind_moves_to_another_palace(castle: Castle, tmp_path: Path) -> None:
    file = tmp_path / "mind.jsonl"
    counts = castle.memory_export(file)
    other = Castle(tmp_path / "two", embedder="fake")
    done = other.memory_take_in(file)
    # Its drawers are not there: what is only about them is left out.
    assert done.dropped == {"mem_episodes": counts["mem_episodes"]}
    assert "castle import" in done.warnings[0]
    assert dict(done.added) == {n: c for n, c in counts.items() if n != "mem_episodes"}
    again = other.memory_take_in(file)
    assert not again.added and again.known == done.added
    second = tmp_path / "again.jsonl"
    other.memory_export(second)
    rows = {line for line in file.read_text(encoding="utf-8").splitlines() if "mem_episodes" not in line}
    assert set(second.read_text(encoding="utf-8").splitlines()) == rows
    memories = other.memory_recall("deploying migrations").memories
    found = {(memory.layer, memory.content) for memory in memories}
    assert {("semantic", "Deploys need migrations"), ("procedural", "Migrate, then restart")} <= found


def test_into_the_palace_it_came_from_nothing_is_added(castle: Castle, tmp_path: Path) -> None:
    castle.memory_export(tmp_path / "mind.jsonl")
    done = castle.memory_take_in(tmp_path / "mind.jsonl")
    assert not done.added and not done.dropped and not done.warnings


@pytest.mark.parametrize(
    "lines",
    [
        ["hello"],
        [{"castle_mind": 2}],
        [{"castle_mind": 1, "schema": 1}],
        [None, {"t": "drawers", "id": "x"}],
        [None, {"t": "mem_meta", "key": "a", "value": "b", "more": 1}],
        [None, "{"],
        [None, "[" * 100_000],
        [None, {"t": "mem_meta", "key": "a"}],
        [None, {"t": "mem_meta", "key": ["a"], "value": "b"}],
        [None, {"t": "mem_sessions", **SESSION, "ended_at": 2**70}],
        [None, {"t": "mem_sessions", **SESSION, "ended_at": True}],
        [None, {"t": "mem_sessions", **SESSION, "wing": "\ud800"}],
        [None, {"t": "mem_sessions", **SESSION, "offsets_json": "nothing"}],
        [None, {"t": "mem_vectors_", "id": "x"}],
    ],
)
def test_what_is_no_export_changes_nothing(castle: Castle, tmp_path: Path, lines: list[object]) -> None:
    good = tmp_path / "good.jsonl"
    castle.memory_export(good)
    head = good.read_text(encoding="utf-8").splitlines()[0]
    bad = tmp_path / "bad.jsonl"
    written = [
        head if line is None else line if isinstance(line, str) else json.dumps(line) for line in lines
    ]
    bad.write_text("\n".join(written) + "\n", encoding="utf-8")
    with pytest.raises(UsageError):
        castle.memory_take_in(bad)
    after = tmp_path / "after.jsonl"
    castle.memory_export(after)
    assert after.read_bytes() == good.read_bytes()


def test_bytes_that_are_no_text_are_said_of_the_file(castle: Castle, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_bytes(b'{"castle_mind": 1}\n\xff\xfe\n')
    with pytest.raises(UsageError, match=r"other\.jsonl cannot be read"):
        castle.memory_take_in(file)
