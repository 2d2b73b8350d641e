from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from castle.mine.formats import SessionInfo
from tests.mine_formats.support import broken_of, events_of, messages_of, transcripts

USERS = [
    {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lee", "display_name": "annie"}},
    {"id": "U2", "name": "bob", "profile": {"real_name": "", "display_name": "bobby"}},
]
CHANNELS = [{"id": "C1", "name": "general", "created": 1452837318, "topic": {"value": "all"}}]


def export(folder: Path, entries: list[Any], day: str = "2026-01-02") -> Path:
    (folder / "general").mkdir(parents=True, exist_ok=True)
    (folder / "users.json").write_text(json.dumps(USERS), encoding="utf-8")
    (folder / "channels.json").write_text(json.dumps(CHANNELS), encoding="utf-8")
    (folder / "general" / f"{day}.json").write_text(json.dumps(entries), encoding="utf-8")
    return folder


def entry(ts: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "ts": ts, "text": text, "user": "U1", **more}


def test_people_threads_and_edits(tmp_path: Path) -> None:
    entries = [
        entry("1452837318.000002", "hi <@U2>", thread_ts="1452837318.000002"),
        entry("1452837319.000003", "hello &amp; welcome", user="U2", thread_ts="1452837318.000002"),
        entry("1452837320.000004", "oops", edited={"user": "U1", "ts": "1452837321.000000"}),
        entry("1452837322.000005", "<@U1> has joined", subtype="channel_join"),
    ]
    events = events_of(export(tmp_path, entries))
    found = messages_of(events)
    assert [(one.id, one.speaker, one.thread, one.parent) for one in found[:3]] == [
        ("1452837318.000002", "Ann Lee", "1452837318.000002", ""),
        ("1452837319.000003", "bobby", "1452837318.000002", "1452837318.000002"),
        ("1452837320.000004", "Ann Lee", "", ""),
    ]
    assert found[0].timestamp == 1_452_837_318_000_002
    assert found[0].metadata["mentions"] == {"U2": "bobby"}
    assert found[1].text == "hello &amp; welcome"
    assert found[2].metadata["edited"] == 1_452_837_321_000_000
    assert (found[3].role, found[3].kind) == ("system", "injected")
    info = next(event for event in events if isinstance(event, SessionInfo))
    assert (info.id, info.title, info.metadata) == ("C1", "#general", {"topic": "all"})


def test_bots_attachments_and_files(tmp_path: Path) -> None:
    attachment = {"pretext": "1 new commit", "text": "fix", "fallback": "1 new commit: fix", "color": "red"}
    file = {"id": "F1", "name": "a.txt", "mimetype": "text/plain", "permalink": "https://x/F1"}
    file["url_private"] = "https://files/F1?t=xoxe-secret"
    entries = [
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "username": "ci", "ts": "1.1",
         "text": "", "attachments": [attachment]},
        entry("2.2", "", files=[file]),
        entry("3.3", "", attachments=[{"fallback": "only this"}]),
        {"type": "message", "ts": "4.4", "text": "", "user": "U1", "blocks": [{"type": "divider"}]},
    ]  # fmt: skip
    found = messages_of(events_of(export(tmp_path, entries)))
    assert [(one.id, one.role, one.speaker, one.text) for one in found] == [
        ("1.1#a0.pretext", "assistant", "ci", "1 new commit"),
        ("1.1#a0.text", "assistant", "ci", "fix"),
        ("2.2#file0", "user", "Ann Lee", ""),
        ("3.3#a0.fallback", "user", "Ann Lee", "only this"),
        ("4.4#blocks", "user", "Ann Lee", '[{"type": "divider"}]'),
    ]
    assert json.loads(found[0].attachments[0].data or b"") == attachment
    assert [(one.name, one.ref) for one in found[2].attachments] == [("a.txt", "https://x/F1")]


def test_a_folder_and_a_zip_of_it_are_the_same(tmp_path: Path) -> None:
    folder = export(tmp_path / "export", [entry("1.1", "one")])
    export(folder, [entry("2.2", "two")], "2026-01-03")
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.json")):
            archive.write(file, f"team/{file.relative_to(folder)}")
    assert [one.text for one in messages_of(events_of(path))] == ["one", "two"]
    assert messages_of(events_of(path)) == messages_of(events_of(folder))
    assert [one.name for one in transcripts(path)] == ["team/"]


def test_one_day_alone(tmp_path: Path) -> None:
    folder = export(tmp_path / "export", [entry("1452837318.000002", "one")])
    found = messages_of(events_of(folder / "general" / "2026-01-02.json"))
    assert [(one.session, one.speaker, one.text) for one in found] == [("general", "U1", "one")]


def test_damaged_lists_and_days(tmp_path: Path) -> None:
    folder = export(tmp_path, [entry("1.1", "one"), "nonsense"])
    export(folder, [entry("2.2", "two")], "2026-01-03")
    (folder / "users.json").write_text("{nope", encoding="utf-8")
    (folder / "general" / "2026-01-04.json").write_text("[{", encoding="utf-8")
    events = events_of(folder)
    assert [one.text for one in messages_of(events)] == ["one", "two"]
    assert [Path(one.where).name for one in broken_of(events)] == [
        "users.json",
        "2026-01-02.json",
        "2026-01-04.json",
    ]
