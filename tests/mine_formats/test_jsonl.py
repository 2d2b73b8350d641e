from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from castle.mine.formats import Checkpoint, Event, Message, Pending, Transcript, exact_bytes, lines
from castle.mine.formats.claude_code import ClaudeCode
from castle.mine.formats.container import Single
from tests.mine_formats.support import broken_of, events_of, messages_of, transcripts, without_checkpoints


def turn(text: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    number = more.pop("n", 1)
    return {
        "type": role,
        "uuid": f"u{number}",
        "sessionId": "s1",
        "cwd": "/work",
        "timestamp": "2026-01-01T00:00:00.123456Z",
        "message": {"role": role, "content": text},
        **more,
    }


def claude(path: Path) -> Transcript:
    return Transcript(Single(path), path.name, ClaudeCode())


def resumed(path: Path, data: bytes, cuts: list[int]) -> list[Event]:
    """Read a file that grows to each of the cuts and its end, going on where the last reading stopped."""
    events: list[Event] = []
    offset, state = 0, None
    for end in [*cuts, len(data)]:
        path.write_bytes(data[:end])
        for event in claude(path).read(offset, state):
            if isinstance(event, Checkpoint):
                offset, state = event.offset, json.loads(json.dumps(event.state))
            elif not isinstance(event, Pending):
                events.append(event)
    assert offset == len(data)
    return events


def test_a_line_at_a_time_gives_the_same_events(exports: Path, tmp_path: Path) -> None:
    for name in ("daaain_edge_cases.jsonl", "polylogue_claude-normalization-main.jsonl"):
        data = (exports / "claude_code" / name).read_bytes()
        path = tmp_path / name
        path.write_bytes(data)
        whole = without_checkpoints(claude(path).read())
        ends = [index + 1 for index, byte in enumerate(data) if byte == 10]
        assert resumed(path, data, ends) == whole
        middles = [end - 7 for end in ends]
        assert resumed(path, data, middles) == whole
        for position in range(0, len(data), 97):
            assert resumed(path, data, [position]) == whole


def test_a_growing_transcript_repeats_nothing(exports: Path) -> None:
    folder = exports / "claude_code" / "codemie" / "incremental-simple"
    first = list(claude(folder / "turn-1.jsonl").read())
    last = [event for event in first if isinstance(event, Checkpoint)][-1]
    assert last.offset == (folder / "turn-1.jsonl").stat().st_size
    later = messages_of(claude(folder / "turn-2.jsonl").read(last.offset, last.state))
    assert len(messages_of(first)) == 3
    assert len(later) == 19  # 22 in the whole file
    assert not {one.id for one in later} & {one.id for one in messages_of(first)}


def test_a_half_written_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    line = json.dumps(turn("hello")).encode()
    path.write_bytes(line + b"\n" + line[:40])
    events = list(claude(path).read())
    assert events[-1] == Pending(2, len(line) + 1, 40)
    assert not broken_of(events)
    assert [event.offset for event in events if isinstance(event, Checkpoint)] == [len(line) + 1]


def test_a_last_line_without_line_feed_is_taken_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    line = json.dumps(turn("hello")).encode()
    path.write_bytes(line)
    events = list(claude(path).read())
    assert [one.text for one in messages_of(events)] == ["hello"]
    last = [event for event in events if isinstance(event, Checkpoint)][-1]
    path.write_bytes(line + b"\n" + json.dumps(turn("more", n=2)).encode() + b"\nnonsense\n")
    later = list(claude(path).read(last.offset, last.state))
    assert [one.text for one in messages_of(later)] == ["more"]
    assert [one.position for one in broken_of(later)] == [3]


def test_broken_lines_are_numbered_and_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    good = json.dumps(turn("hello")).encode()
    path.write_bytes(
        b"\n".join([b"{", good, b"[1]", b"", b'{"a": ' + b"[" * 100_000, b"1" * 5000, good]) + b"\n"
    )
    events = list(claude(path).read())
    assert len(messages_of(events)) == 2
    found = [(one.position, one.reason) for one in broken_of(events)]
    assert [position for position, _ in found] == [1, 3, 5, 6]
    assert found[1][1] == "not a JSON object but list"


def test_crlf_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + b"".join(json.dumps(turn(f"a\r\nb{n}", n=n)).encode() + b"\r\n" for n in (1, 2))
    )
    assert [one.text for one in messages_of(events_of(path))] == ["a\r\nb1", "a\r\nb2"]
    assert not broken_of(events_of(path))


def test_nul_surrogates_and_stray_bytes_come_back(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines_ = [
        json.dumps(turn("nul \x00 lone \ud800 end")).encode(),
        json.dumps(turn("stray X and é", n=2), ensure_ascii=False).encode().replace(b"X", b"\xff\xc3("),
        json.dumps(turn("raw Y tab", n=3)).encode().replace(b"Y", b"\x01"),
    ]
    path.write_bytes(b"\n".join(lines_) + b"\n")
    first, second, third = messages_of(events_of(path))
    assert first.text == "nul \x00 lone \ud800 end"
    assert exact_bytes(first.text) == b"nul \x00 lone \xed\xa0\x80 end"
    assert second.escaped and not first.escaped
    assert exact_bytes(second.text, escaped=True) == b"stray \xff\xc3( and \xc3\xa9"
    assert third.text == "raw \x01 tab"


def test_times_are_whole_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    records = [
        turn("a"),
        turn("b", n=2, timestamp="2026-01-01T01:00:00+01:00"),
        turn("c", n=3, timestamp="soon"),
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    start = 1_767_225_600_000_000
    assert [one.timestamp for one in messages_of(events_of(path))] == [start + 123_456, start, None]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    monkeypatch.setattr(lines, "_PIECE", 64)
    path = tmp_path / "s1.jsonl"
    texts = ["a", "x" * 5000, "b"]
    path.write_text(
        "".join(json.dumps(turn(one, n=n)) + "\n" for n, one in enumerate(texts)), encoding="utf-8"
    )
    events = list(claude(path).read())
    assert [one.text for one in messages_of(events)] == ["a", "b"]
    assert [one.position for one in broken_of(events)] == [2]
    assert [event.offset for event in events if isinstance(event, Checkpoint)][-1] == path.stat().st_size


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "gone.jsonl"
    assert [one.unit for one in broken_of(claude(path).read())] == ["file"]


def test_a_record_without_uuid_keeps_its_id(tmp_path: Path) -> None:
    record = turn("hello")
    del record["uuid"]
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(json.dumps(record) + "\n", encoding="utf-8")
    second.write_text("\n\n" + json.dumps(record) + "\r\n", encoding="utf-8", newline="")
    assert messages_of(claude(first).read())[0].id == messages_of(claude(second).read())[0].id


def test_kinds_of_claude_code_records(tmp_path: Path) -> None:
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    result = [
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": "a\n"}],
            "is_error": True,
        }
    ]
    records = [
        turn("agent, do it", n=1, isSidechain=True, agentId="a7"),
        turn(call, "assistant", n=2, isSidechain=True, agentId="a7"),
        turn(result, n=3),
        turn("meta", n=4, isMeta=True),
        turn("continued", n=5, isCompactSummary=True),
        turn([{"type": "text", "text": "API Error"}], "assistant", n=6, isApiErrorMessage=True),
        {
            "type": "system",
            "uuid": "u7",
            "sessionId": "s1",
            "content": "compacted",
            "subtype": "compact_boundary",
        },
        {"type": "attachment", "uuid": "u8", "attachment": {"type": "queued_command", "prompt": "also this"}},
        {"type": "attachment", "uuid": "u9", "attachment": {"type": "todo", "content": "empty"}},
        {"type": "queue-operation", "operation": "enqueue", "content": "later", "sessionId": "s1"},
    ]
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    found: list[Message] = messages_of(claude(path).read())
    assert [(one.role, one.kind) for one in found] == [
        ("user", "subagent"),
        ("assistant", "tool"),
        ("tool", "tool"),
        ("user", "injected"),
        ("user", "injected"),
        ("assistant", "injected"),
        ("system", "injected"),
        ("user", "message"),
        ("system", "injected"),
        ("user", "queued"),
    ]
    assert [one.thread for one in found[:3]] == ["a7", "a7", ""]
    assert (found[1].text, found[1].tool, found[2].tool) == ('{"command": "ls"}', "Bash", "Bash")
    assert found[2].metadata["is_error"] is True
    assert transcripts(path)[0].format.name == "claude-code"
