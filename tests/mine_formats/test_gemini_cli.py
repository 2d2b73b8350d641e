from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from castle.mine.formats import Checkpoint, SessionInfo, Withdrawn
from tests.mine_formats.support import events_of, messages_of, silent_of, transcripts

META = {"sessionId": "5b959dae-1", "projectHash": "f00", "startTime": "2026-01-01T00:00:00Z"}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def test_jsonl_with_updates_and_rewinds(tmp_path: Path) -> None:
    call = {"id": "c", "name": "glob", "args": {"pattern": "*"}}
    answer = {
        "id": "b",
        "type": "gemini",
        "content": "looking",
        "thoughts": [{"subject": "S", "description": "D"}],
    }
    result = [{"functionResponse": {"response": {"output": "a.txt"}}}]
    path = write(
        tmp_path / "session-x.jsonl",
        META,
        {"id": "a", "type": "user", "content": [{"text": "find files"}]},
        {**answer, "toolCalls": [call]},
        {**answer, "toolCalls": [{**call, "result": result, "status": "success"}]},
        {"$set": {"lastUpdated": "2026-01-01T00:00:05Z"}},
        {"$set": {"summary": "Finding files"}},
        {"$rewindTo": "a"},
        {"id": "i", "type": "info", "content": "switched model"},
    )
    events = events_of(path)
    found = messages_of(events)
    assert [(one.id, one.kind, one.text) for one in found] == [
        ("a", "message", "find files"),
        ("b#t0", "thinking", "D"),
        ("b", "message", "looking"),
        ("b#c0", "tool", '{"pattern": "*"}'),
        ("b#c0.result", "tool", "a.txt"),
        ("i", "injected", "switched model"),
    ]
    assert found[1].metadata["subject"] == "S"
    assert [event for event in events if isinstance(event, Withdrawn)] == [Withdrawn("5b959dae-1", "a")]
    assert [event.title for event in events if isinstance(event, SessionInfo)] == ["", "Finding files"]
    assert silent_of(events) == {"$set": 2}


def test_jsonl_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    records = [META, *({"id": str(n), "type": "user", "content": f"turn {n}"} for n in range(5))]
    path = write(tmp_path / "session-x.jsonl", *records)
    transcript = transcripts(path)[0]
    third = [event for event in transcript.read() if isinstance(event, Checkpoint)][2]
    later = messages_of(transcript.read(third.offset, json.loads(json.dumps(third.state))))
    assert [one.text for one in later] == ["turn 2", "turn 3", "turn 4"]
    assert {one.session for one in later} == {"5b959dae-1"}


def test_the_older_jsonl(tmp_path: Path) -> None:
    path = write(
        tmp_path / "session-y.jsonl",
        {"type": "session_metadata", "sessionId": "s9", "projectHash": "f00"},
        {"type": "user", "id": "u", "content": [{"text": "hi"}]},
        {"type": "gemini", "id": "g", "content": [{"text": "hello"}]},
        {"type": "message_update", "id": "g", "tokens": {}},
    )
    assert [(one.session, one.role, one.text) for one in messages_of(events_of(path))] == [
        ("s9", "user", "hi"),
        ("s9", "assistant", "hello"),
    ]


def test_parts_of_a_users_message(tmp_path: Path) -> None:
    files = "\n--- Content from referenced files ---\nx = 1\n--- End of content ---"
    content = [
        {"text": "see @a.py"},
        {"text": files},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ]
    document = {**META, "messages": [{"id": "a", "type": "user", "content": content}]}
    path = tmp_path / "session-z.json"
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    found = messages_of(events_of(path))
    assert [(one.kind, one.text) for one in found] == [("message", "see @a.py"), ("injected", files)]
    assert found[0].attachments[0].data == b"hi"


def test_log_entries_that_the_session_does_not_have(exports: Path, tmp_path: Path) -> None:
    folder = exports / "gemini_cli" / "codemie" / "gemini"
    log = json.loads((folder / "logs.json").read_text(encoding="utf-8"))
    (tmp_path / "logs.json").write_text(json.dumps([*log, {**log[0], "messageId": 3}]), encoding="utf-8")
    name = "session-2025-12-01T21-45-5b959dae.json"
    (tmp_path / name).write_bytes((folder / name).read_bytes())
    transcript = next(one for one in transcripts(tmp_path) if one.name == "logs.json")
    assert [(one.id, one.text) for one in messages_of(transcript.read())] == [("log-3", "hi")]
