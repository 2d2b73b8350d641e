from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from castle.mine.formats import SessionInfo
from tests.mine_formats.support import broken_of, events_of, messages_of, transcripts


def storage(folder: Path, parts: dict[str, dict[str, Any]], **session: Any) -> Path:
    about = {"id": "ses_1", "title": "T", "directory": "/w", "time": {"created": 1737979200000}, **session}
    files: dict[str, Any] = {"session/p/ses_1.json": about}
    files["message/ses_1/msg_1.json"] = {"id": "msg_1", "role": "user", "time": {"created": 1737979200001}}
    files |= {f"part/msg_1/{name}.json": {"id": name, **part} for name, part in parts.items()}
    for name, value in files.items():
        path = folder / "storage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    return folder


def test_types_of_parts(tmp_path: Path) -> None:
    state = {"status": "completed", "input": {"a": 1}, "output": "done", "error": "late"}
    parts: dict[str, dict[str, Any]] = {
        "prt_1": {"type": "text", "text": "hello"},
        "prt_2": {"type": "text", "text": "file contents", "synthetic": True},
        "prt_3": {"type": "reasoning", "text": "hm"},
        "prt_4": {
            "type": "file",
            "mime": "image/png",
            "filename": "a.png",
            "url": "data:image/png;base64,aGk=",
        },
        "prt_5": {"type": "tool", "tool": "bash", "callID": "c", "state": state},
        "prt_6": {"type": "step-start"},
        "prt_7": {"type": "novel", "x": "y"},
    }
    found = messages_of(events_of(storage(tmp_path, parts)))
    assert [(one.id, one.kind, one.text) for one in found] == [
        ("msg_1", "message", "hello"),
        ("msg_1#prt_2", "injected", "file contents"),
        ("msg_1#prt_3", "thinking", "hm"),
        ("msg_1#prt_5", "tool", '{"a": 1}'),
        ("msg_1#prt_5.output", "tool", "done"),
        ("msg_1#prt_5.error", "tool", "late"),
        ("msg_1#prt_7", "tool", '{"id": "prt_7", "type": "novel", "x": "y"}'),
    ]
    assert found[0].attachments[0].data == b"hi"
    assert found[0].timestamp == 1_737_979_200_001_000


def test_a_session_of_an_agent(tmp_path: Path) -> None:
    events = events_of(storage(tmp_path, {"prt_1": {"type": "text", "text": "do it"}}, parentID="ses_0"))
    assert [(one.kind, one.thread) for one in messages_of(events)] == [("subagent", "ses_1")]
    assert [event.parent for event in events if isinstance(event, SessionInfo)] == ["ses_0"]


def test_broken_files_and_files_of_others(tmp_path: Path) -> None:
    storage(tmp_path, {"prt_1": {"type": "text", "text": "hello"}})
    (tmp_path / "storage" / "part" / "msg_1" / "prt_0.json").write_text("{", encoding="utf-8")
    (tmp_path / "storage" / "message" / "ses_1" / "msg_0.json").write_text("[]", encoding="utf-8")
    (tmp_path / "storage" / "message" / "ses_10").mkdir()
    (tmp_path / "storage" / "message" / "ses_10" / "msg_9.json").write_text("{}", encoding="utf-8")
    events = events_of(tmp_path)
    assert [one.text for one in messages_of(events)] == ["hello"]
    assert sorted(Path(one.where).name for one in broken_of(events)) == ["msg_0.json", "prt_0.json"]


def test_inside_a_zip(tmp_path: Path) -> None:
    folder = storage(tmp_path / "a", {"prt_1": {"type": "text", "text": "hello"}})
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        for file in sorted(folder.rglob("*.json")):
            archive.write(file, file.relative_to(folder).as_posix())
    assert [one.format.name for one in transcripts(tmp_path / "o.zip")] == ["opencode"]
    assert [one.text for one in messages_of(events_of(tmp_path / "o.zip"))] == ["hello"]
