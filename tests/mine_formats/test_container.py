from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from castle.mine.formats import Transcript, Unread, detect, formats, lines, open_container
from tests.mine_formats.support import broken_of, events_of, messages_of, transcripts, unread


def record(text: str) -> str:
    body = {"type": "user", "uuid": text, "sessionId": "s1", "message": {"role": "user", "content": text}}
    return json.dumps(body) + "\n"


def test_formats_that_only_guess_come_last() -> None:
    assert [one.name for one in formats()] == [
        "claude-code",
        "codex",
        "gemini-cli",
        "messages",
        "recorded",
        "claude-ai",
        "chatgpt",
        "slack",
        "opencode",
        "cursor",
        "aider",
        "plain",
    ]
    assert [one.certain for one in formats()] == [True] * 11 + [False]


def test_detect_goes_by_content(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(record("hello"), encoding="utf-8")
    found = detect(path)
    assert found is not None and found.name == "claude-code"
    path.write_text("just notes\n", encoding="utf-8")
    assert detect(path) is None


def test_detect_with_a_first_line_longer_than_the_head(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    body = {"message": {"role": "user", "content": "x" * 200_000}}
    for first in ({"type": "user", **body, "uuid": "u"}, {"parentUuid": None, "type": "user", **body}):
        path.write_text(json.dumps(first) + "\n", encoding="utf-8")
        found = detect(path)
        assert found is not None and found.name == "claude-code"


@pytest.mark.parametrize("indent", [None, 1])
def test_layout_of_the_json_does_not_matter(exports: Path, tmp_path: Path, indent: int | None) -> None:
    for folder in ("gemini_cli", "claude_ai", "chatgpt"):
        for source in sorted((exports / folder).rglob("*.json")):
            path = tmp_path / source.name
            value = json.loads(source.read_text(encoding="utf-8"))
            path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
            assert [one.format.name.split("-")[0] for one in transcripts(path)] == [folder.split("_")[0]]
            assert messages_of(events_of(path)) == messages_of(events_of(source))


def test_keys_deeper_down_do_not_make_a_format(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    inner = {
        "mapping": {"current_node": 1},
        "chat_messages": [],
        "sessionId": "s",
        "projectHash": "",
        "messages": [],
    }
    for value in ({"inner": inner, "id": 1}, [{"inner": inner, "title": ""}], [[inner]], {"id": 1}):
        path.write_text(json.dumps(value), encoding="utf-8")
        assert detect(path) is None


def test_reading_from_a_closed_zip_is_reported(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("s.jsonl", record("one"))
    transcript = transcripts(tmp_path / "export.zip")[0]
    assert [one.unit for one in broken_of(transcript.read())] == ["file"]


def test_a_folder_with_all_kinds_of_things(tmp_path: Path) -> None:
    outside, tmp_path = tmp_path, tmp_path / "a" / "b" / "c"
    tmp_path.mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "deep" / "s1.jsonl").write_text(record("one"), encoding="utf-8")
    (tmp_path / "node_modules" / "s2.jsonl").write_text(record("two"), encoding="utf-8")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "deep" / "s1.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("a/s3.jsonl", record("three"))
        archive.writestr("../../evil.jsonl", record("four"))
        archive.writestr("inner.zip", b"PK\x03\x04rest")
    (tmp_path / "bad.zip").write_bytes(b"PK\x05\x06" + b"\0" * 18)
    assert [message.text for message in messages_of(events_of(tmp_path))] == ["one", "four", "three"]
    reasons = {one.address.removeprefix(str(tmp_path)): one.reason for one in unread(tmp_path)}
    assert reasons == {
        "/empty.txt": "empty",
        "/link.jsonl": "a link",
        "/pipe.jsonl": "not a regular file",
        "/export.zip!/inner.zip": "a zip inside a zip",
    }
    assert sorted(path.name for path in outside.rglob("evil*")) == []


def test_addresses(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("a/s3.jsonl", record("three"))
    assert [one.address for one in transcripts(tmp_path / "export.zip")] == [
        f"{tmp_path}/export.zip!/a/s3.jsonl"
    ]
    assert [one.stem for one in transcripts(tmp_path / "export.zip")] == ["s3"]


def test_what_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    assert [one.failed for one in unread(tmp_path / "gone")] == [True]
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    assert [one.failed for one in unread(fifo)] == [True]


def test_a_damaged_member_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.jsonl", record("damage-me") + record("x" * 300_000))
        archive.writestr("b.jsonl", record("whole"))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"damage-me", b"damaged!!"))
    events = events_of(path)
    assert [one.reason.split(":")[0] for one in broken_of(events)] == ["cannot be read"]
    assert messages_of(events)[-1].text == "whole"


def test_a_zip_that_expands_without_end_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1 << 20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("s.jsonl", record("before") + " " * (16 << 20) + "\n" + record("after"))
    assert path.stat().st_size < 50_000
    events = events_of(path)
    assert [message.text for message in messages_of(events)] == ["before", "after"]
    assert [one.position for one in broken_of(events)] == [2]


def test_a_transcript_in_a_zip_goes_on_from_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("s.jsonl", record("one") + record("two"))
    with open_container(path) as found:
        transcript = next(one for one in found if isinstance(one, Transcript))
        later = list(transcript.read(len(record("one")), {"line": 2}))
    assert [message.text for message in messages_of(later)] == ["two"]


def test_names_with_odd_characters(tmp_path: Path) -> None:
    path = tmp_path / "sp ace#?%41 ü.jsonl"
    path.write_text(record("one"), encoding="utf-8")
    assert len(transcripts(tmp_path)) == 1
    assert not [one for one in unread(tmp_path) if isinstance(one, Unread)]


@pytest.mark.parametrize("share", [0.0001, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", ["export.zip", "export"])
def test_a_zip_that_is_cut_off_is_called_one(tmp_path: Path, name: str, share: float) -> None:
    path = tmp_path / "talks" / name
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for number in range(50):
            archive.writestr(f"{number}.jsonl", record(f"talk {number} " * 40))
    data = path.read_bytes()
    path.write_bytes(data[: max(4, int(len(data) * share))])
    for place in (path, path.parent):
        found = unread(place)
        assert [(one.address, one.reason) for one in found] == [
            (str(path), "a zip that is damaged or cut off")
        ]
        assert transcripts(place) == []


def test_a_zip_with_a_damaged_list_of_members_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.jsonl", record("one"))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"PK\x01\x02", b"PK\xff\xff"))
    for place in (path, tmp_path):
        (found,) = unread(place)
        assert found.address == str(path)
        assert found.reason.startswith("cannot be read")
