"""Claude.ai and ChatGPT: shapes that the sample exports do not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from castle.mine.formats import Message, SessionInfo
from tests.mine_formats.support import broken_of, events_of, messages_of


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def turn(name: str, text: str, parent: str = "", sender: str = "human", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {
        "uuid": name,
        "sender": sender,
        "text": text,
        "content": content,
        "parent_message_uuid": parent,
        **more,
    }


def claude_ai(tmp_path: Path, *turns: Any, **more: Any) -> list[Message]:
    return messages_of(
        events_of(write(tmp_path / "conversations.json", [{"uuid": "c", "chat_messages": turns, **more}]))
    )


def test_branches_of_claude_ai(tmp_path: Path) -> None:
    turns = [
        turn("a", "q", "00000000"),
        turn("b1", "first", "a", "assistant", created_at="2026-01-01T00:00:01Z"),
        turn("b2", "second", "a", "assistant", created_at="2026-01-01T00:00:02Z"),
    ]
    assert [(one.id, one.shown) for one in claude_ai(tmp_path, *turns)] == [
        ("a", True),
        ("b1", False),
        ("b2", True),
    ]
    chosen = claude_ai(tmp_path, *turns, current_leaf_message_uuid="b1")
    assert [(one.id, one.shown) for one in chosen] == [("a", True), ("b1", True), ("b2", False)]


def test_the_flat_text_of_claude_ai_is_not_said_twice(tmp_path: Path) -> None:
    hidden = "\n```\nThis block is not supported on your current device yet.\n```\n"
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one\ntwo"},
        {"type": "tool_use", "name": "search", "input": {"q": 1}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "found"}]},
        {"type": "text", "text": "three"},
    ]
    one = turn("a", f"one\ntwo{hidden}three", sender="assistant") | {"content": blocks}
    assert [(part.id, part.kind, part.text) for part in claude_ai(tmp_path, one)] == [
        ("a", "thinking", "hm"),
        ("a#b1", "message", "one\ntwo"),
        ("a#b2", "tool", '{"q": 1}'),
        ("a#b3", "tool", "found"),
        ("a#b4", "message", "three"),
    ]


def test_files_and_private_words_of_claude_ai(tmp_path: Path) -> None:
    one = turn(
        "a",
        "see <private>pin 1234</private>",
        attachments=[{"file_name": "n.txt", "file_type": "txt", "extracted_content": "notes"}],
        files=[{"file_uuid": "f1", "file_name": "p.png"}],
        files_v2=[{"file_uuid": "f1", "file_name": "p.png"}],
    )
    found = claude_ai(tmp_path, one)
    assert [(part.id, part.kind, part.text) for part in found] == [
        ("a", "message", "see "),
        ("a@4", "private", "<private>pin 1234</private>"),
        ("a#a0", "attachment", "notes"),
    ]
    assert [file.ref for file in found[0].attachments] == ["f1"]
    assert found[2].attachments[0].name == "n.txt"


def test_broken_conversations_do_not_stop_the_others(tmp_path: Path) -> None:
    value = [{"uuid": "x", "name": "none"}, 5, {"uuid": "c", "chat_messages": [3, turn("a", "hello")]}]
    events = events_of(write(tmp_path / "conversations.json", value))
    assert [one.text for one in messages_of(events)] == ["hello"]
    assert [one.position for one in broken_of(events)] == [1, 2, 3]


def node(name: str, parent: str | None, content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "parent": parent,
        "children": more.pop("children", []),
        "message": {"id": name, "author": {"role": role}, "content": content, **more},
    }


def chatgpt(tmp_path: Path, *nodes: dict[str, Any], **more: Any) -> list[Message]:
    value = {"conversation_id": "c", "mapping": {one["id"]: one for one in nodes}, **more}
    return messages_of(events_of(write(tmp_path / "conversations.json", [value])))


def text(*parts: Any) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


def test_content_types_of_chatgpt(tmp_path: Path) -> None:
    found = chatgpt(
        tmp_path,
        node("a", None, text("one", "two")),
        node(
            "b",
            "a",
            {"content_type": "code", "language": "python", "text": "x=1"},
            "assistant",
            recipient="python",
        ),
        node("c", "b", {"content_type": "tether_browsing_display", "result": "r", "summary": "s"}, "tool"),
        node("d", "c", {"content_type": "tether_quote", "title": "t", "url": "u", "text": "q"}, "tool"),
        node(
            "e",
            "d",
            {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]},
            "assistant",
        ),
        node("f", "e", text("shh"), "user", metadata={"is_visually_hidden_from_conversation": True}),
        node("g", "f", text(""), "system", weight=0),
        node("h", "g", {"content_type": "new_thing", "payload": {"x": "y"}}, "assistant"),
        node("i", "h", text({"content_type": "audio_transcription", "text": "spoken"})),
        node("j", "i", {"content_type": "reasoning_recap", "content": "Thought for 5s"}, "assistant"),
        node("k", "j", text("late"), "assistant", weight=0.0, metadata={"model_slug": "m"}),
    )
    assert [(one.id, one.kind, one.text) for one in found] == [
        ("a", "message", "one"),
        ("a#b1", "message", "two"),
        ("b", "tool", "x=1"),
        ("c", "tool", "r"),
        ("c#summary", "tool", "s"),
        ("d", "tool", "q"),
        ("e#t0.summary", "thinking", "s"),
        ("e#t0.content", "thinking", "c"),
        ("f", "injected", "shh"),
        ("h", "message", '{"payload": {"x": "y"}}'),
        ("i", "message", "spoken"),
        ("j", "thinking", "Thought for 5s"),
        ("k", "message", "late"),
    ]
    by_id = {one.id: one for one in found}
    assert by_id["b"].tool == "python"
    assert by_id["d"].metadata["url"] == "u"
    assert by_id["k"].metadata == {"model": "m", "weight": 0.0}
    assert by_id["h"].parent == "g"


def test_loops_and_lost_parents_of_chatgpt(tmp_path: Path) -> None:
    found = chatgpt(
        tmp_path,
        node("a", "b", text("one"), children=["b", "nowhere"]),
        node("b", "a", text("two"), children=["a"]),
        node("c", "lost", text("three")),
        current_node="c",
    )
    assert {(one.id, one.shown) for one in found} == {("a", False), ("b", False), ("c", True)}


def test_a_branch_is_told_to_its_end(tmp_path: Path) -> None:
    found = chatgpt(
        tmp_path,
        {"id": "root", "parent": None, "children": ["a"], "message": None},
        node("a", "root", text("q"), children=["x", "y"]),
        node("y", "a", text("second"), "assistant", children=["z"]),
        node("x", "a", text("first"), "assistant", children=[]),
        node("z", "y", text("after"), children=[]),
        current_node="z",
    )
    assert [one.id for one in found] == ["a", "x", "y", "z"]
    assert [one.shown for one in found] == [True, False, True, True]


def test_surrogates_in_a_document(tmp_path: Path) -> None:
    found = chatgpt(tmp_path, node("a", None, text("half \ud83d and \x00")))
    assert found[0].text == "half \ud83d and \x00"


def test_session_of_chatgpt(tmp_path: Path) -> None:
    value = {"id": "i", "title": "T", "create_time": 1784164544.946, "mapping": {}, "current_node": "x"}
    events = events_of(write(tmp_path / "c.json", {**value, "mapping": {"a": node("a", None, text("x"))}}))
    info = next(event for event in events if isinstance(event, SessionInfo))
    assert (info.id, info.title, info.started_at) == ("i", "T", 1_784_164_544_946_000)
