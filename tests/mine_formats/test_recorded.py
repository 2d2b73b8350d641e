"""What a recorder of sessions wrote, turn by turn."""

from __future__ import annotations

import json
from pathlib import Path

from castle import Castle
from castle.mine.formats import Message, SessionInfo, detect
from tests.mine_formats.support import events_of, messages_of, silent_of

START = {"type": "session_start", "session_id": "s1", "cwd": "/nowhere/ferry", "platform": "codex"}
TIME = "2026-05-01T10:00:00Z"
TURN = {"type": "turn", "session_id": "s1", "turn_id": "t1", "timestamp": TIME}


def written(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_turn_is_what_was_asked_and_what_was_answered(tmp_path: Path) -> None:
    used = {"tool_calls": [{"name": "Bash"}], "assistant_message": "Bash: make", "turn_id": "t2"}
    path = written(
        tmp_path / "a.jsonl",
        START,
        {**TURN, "user_message": " Which buoy?", "assistant_message": "The red one.", "model": "m"},
        {**TURN, **used},
        {"type": "context", "session_id": "s1", "content": "Buoys: red, green."},
        {"type": "session_end", "session_id": "s1", "duration_sec": 5},
    )
    found = detect(path)
    assert found is not None and found.name == "recorded"
    events = events_of(path)
    assert events[0] == SessionInfo("s1", cwd="/nowhere/ferry", metadata={"platform": "codex"})
    told = [(m.id.partition("@")[0], m.role, m.kind, m.text) for m in messages_of(events)]
    assert told[:3] == [
        ("t1:user", "user", "message", " Which buoy?"),
        ("t1:assistant", "assistant", "message", "The red one."),
        ("t2:assistant", "assistant", "tool", "Bash: make"),
    ]
    assert told[3][1:] == ("system", "injected", "Buoys: red, green.")
    first = messages_of(events)[0]
    assert isinstance(first, Message) and first.metadata == {"model": "m"} and first.timestamp
    assert not silent_of(events)


def test_sessions_are_mined_once_and_a_half_line_waits(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", START, {**TURN, "user_message": "yes"})
    more = json.dumps({**TURN, "turn_id": "t2", "user_message": "yes"}) + "\n"
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        assert castle.mine_conversations(path).messages_new == 1
        with path.open("a", encoding="utf-8") as file:
            file.write(more[:20])
        assert castle.mine_conversations(path).messages_new == 0
        with path.open("a", encoding="utf-8") as file:
            file.write(more[20:])
        assert castle.mine_conversations(path).messages_new == 1
        assert castle.mine_conversations(path).messages_new == 0
        with castle._palace().ledger.read() as cx:
            assert set(cx.exec_driver_sql("SELECT wing FROM drawers").scalars()) == {"ferry"}
