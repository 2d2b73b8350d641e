"""Cursor's database, made here after its documented keys."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from castle.mine.formats import SessionInfo
from tests.mine_formats.support import broken_of, events_of, messages_of, transcripts

PANEL = "workbench.panel.aichat.view.aichat.chatdata"


def database(
    path: Path, disk: Mapping[str, Any], items: Mapping[str, Any] | None = None, wal: bool = False
) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        if wal:
            connection.execute("PRAGMA journal_mode = WAL")
        for table, rows in (("ItemTable", items or {}), ("cursorDiskKV", disk)):
            connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
            for key, value in rows.items():
                data = value if isinstance(value, bytes | str) or value is None else json.dumps(value)
                connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, data))
        connection.commit()
    return path


def composer(**more: Any) -> dict[str, Any]:
    headers = [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}]
    return {
        "composerId": "c1",
        "name": "Fix it",
        "createdAt": 1737979200000,
        "fullConversationHeadersOnly": headers,
        **more,
    }


DISK: dict[str, Any] = {
    "composerData:c1": composer(),
    "bubbleId:c1:b2": {
        "type": 2,
        "text": "done",
        "thinking": {"text": "hm"},
        "modelInfo": {"modelName": "m"},
        "codeBlocks": [{"content": "x = 1"}, {"content": "done"}],
        "toolFormerData": {
            "name": "edit",
            "rawArgs": '{"f": 1}',
            "result": '{"ok": true}',
            "toolCallId": "t",
        },
    },
    "bubbleId:c1:b1": {"type": 1, "text": "fix \U0001f600 it", "createdAt": "2026-01-01T00:00:00.000Z"},
    "bubbleId:c1:b0": {"type": 1, "text": "an earlier try"},
    "bubbleId:c10:z": {"type": 1, "text": "no composer"},
    "messageRequestContext:c1": {"x": 1},
}


def test_composers_and_bubbles(tmp_path: Path) -> None:
    events = events_of(database(tmp_path / "state.vscdb", DISK))
    found = messages_of(events)
    assert [(one.session, one.id, one.role, one.kind, one.text, one.shown) for one in found] == [
        ("c1", "b1", "user", "message", "fix \U0001f600 it", True),
        ("c1", "b2#thinking", "assistant", "thinking", "hm", True),
        ("c1", "b2", "assistant", "message", "done", True),
        ("c1", "b2#code0", "assistant", "message", "x = 1", True),
        ("c1", "b2#call", "assistant", "tool", '{"f": 1}', True),
        ("c1", "b2#result", "tool", "tool", '{"ok": true}', True),
        ("c1", "b0", "user", "message", "an earlier try", False),
        ("c10", "z", "user", "message", "no composer", True),
    ]
    assert found[0].timestamp == 1_767_225_600_000_000
    info = next(event for event in events if isinstance(event, SessionInfo))
    assert (info.id, info.title, info.started_at) == ("c1", "Fix it", 1_737_979_200_000_000)
    assert [one.reason for one in broken_of(events)] == ["composerData:c10: no value"]


def test_conversations_kept_inline_and_the_older_panel(tmp_path: Path) -> None:
    inline = composer(
        fullConversationHeadersOnly=[], conversation=[{"bubbleId": "i1", "type": 1, "text": "inline"}]
    )
    tabs = [{"tabId": "t1", "chatTitle": "Old", "lastSendTime": 1700000000000, "bubbles": [
        {"type": "user", "id": "p1", "text": "question"}, {"type": "ai", "rawText": "answer"},
        7]}]  # fmt: skip
    path = database(tmp_path / "state.vscdb", {"composerData:c1": inline}, {PANEL: {"tabs": tabs}})
    events = events_of(path)
    assert [(one.session, one.id, one.role, one.text) for one in messages_of(events)] == [
        ("c1", "i1", "user", "inline"),
        ("t1", "p1", "user", "question"),
        ("t1", "t1-1", "assistant", "answer"),
    ]
    assert len(broken_of(events)) == 1


def test_nothing_is_written_beside_the_database(tmp_path: Path) -> None:
    path = database(tmp_path / "sp#ace?.vscdb", DISK, wal=True)
    before = (sorted(one.name for one in tmp_path.iterdir()), path.read_bytes())
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert len(messages_of(events_of(path))) == 8
    finally:
        tmp_path.chmod(0o700)
    assert (sorted(one.name for one in tmp_path.iterdir()), path.read_bytes()) == before


def test_changes_in_the_log_are_reported(tmp_path: Path) -> None:
    path = database(tmp_path / "state.vscdb", DISK)
    (tmp_path / "state.vscdb-wal").write_bytes(b"x" * 32)
    events = events_of(path)
    assert len(messages_of(events)) == 8
    assert [Path(one.where).name for one in broken_of(events) if one.unit == "file"] == ["state.vscdb-wal"]


def test_inside_a_zip_it_is_read_in_memory(tmp_path: Path) -> None:
    path = database(tmp_path / "state.vscdb", DISK, wal=True)
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "User/globalStorage/state.vscdb")
    assert [one.format.name for one in transcripts(tmp_path / "c.zip")] == ["cursor"]
    assert messages_of(events_of(tmp_path / "c.zip")) == messages_of(events_of(path))


def test_values_that_cannot_be_read(tmp_path: Path) -> None:
    disk = {
        **DISK,
        "bubbleId:c1:b1": b'{"type": 1, "text": "stray \xff"}',
        "bubbleId:c1:b0": "{",
        "composerData:c2": None,
    }
    events = events_of(database(tmp_path / "state.vscdb", disk))
    stray = next(one for one in messages_of(events) if one.id == "b1")
    assert (stray.text, stray.escaped) == ("stray \udcff", True)
    assert len(broken_of(events)) == 3


def test_a_damaged_database(tmp_path: Path) -> None:
    path = database(tmp_path / "state.vscdb", DISK)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    assert [one.unit for one in broken_of(events_of(path))] == ["file"]
