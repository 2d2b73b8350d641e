from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from castle.mine.formats import Checkpoint, Message, SessionInfo, Transcript
from castle.mine.formats.codex import Codex
from castle.mine.formats.container import Single
from tests.mine_formats.support import messages_of, silent_of

SESSION = "019e1695-0522-7c83-8b39-0dd379793f80"


def line(what: str, second: int = 0, **payload: Any) -> str:
    record = {"timestamp": f"2026-05-11T10:00:{second:02}.000Z", "type": what, "payload": payload}
    return json.dumps(record) + "\n"


def said(role: str, text: str, second: int = 0) -> str:
    kind = "input_text" if role == "user" else "output_text"
    return line("response_item", second, type="message", role=role, content=[{"type": kind, "text": text}])


def heard(what: str, text: str, second: int = 0) -> str:
    field = "text" if what == "agent_reasoning" else "message"
    return line("event_msg", second, type=what, **{field: text})


def codex(path: Path) -> Transcript:
    return Transcript(Single(path), path.name, Codex())


def read(path: Path, *lines: str) -> list[Message]:
    path.write_text("".join(lines), encoding="utf-8")
    return messages_of(codex(path).read())


def test_both_forms_of_a_message_are_one(tmp_path: Path) -> None:
    path = tmp_path / f"rollout-2026-05-11T10-00-00-{SESSION}.jsonl"
    found = read(
        path,
        line("session_meta", id=SESSION, cwd="/w", git={"branch": "main"}, timestamp="2026-05-11T09:00:00Z"),
        said("user", "yes"),
        heard("user_message", "yes"),
        heard("agent_reasoning", "**Thinking**"),
        line("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "**Thinking**"}]),
        heard("agent_message", "done"),
        said("assistant", "done"),
        said("user", "yes", 9),
        heard("user_message", "yes", 9),
    )
    assert [(one.role, one.kind, one.text) for one in found] == [
        ("user", "message", "yes"),
        ("assistant", "thinking", "**Thinking**"),
        ("assistant", "message", "done"),
        ("user", "message", "yes"),
    ]
    assert found[0].id != found[3].id
    assert {one.session for one in found} == {SESSION}
    info = next(event for event in codex(path).read() if isinstance(event, SessionInfo))
    assert (info.cwd, info.git_branch, info.started_at) == ("/w", "main", 1_778_490_000_000_000)


def test_pairs_are_found_across_readings(tmp_path: Path) -> None:
    path = tmp_path / f"rollout-{SESSION}.jsonl"
    start = said("user", "go on")
    path.write_text(start, encoding="utf-8")
    last = [event for event in codex(path).read() if isinstance(event, Checkpoint)][-1]
    path.write_text(start + heard("user_message", "go on") + heard("user_message", "go on"), encoding="utf-8")
    later = list(codex(path).read(last.offset, json.loads(json.dumps(last.state))))
    assert [one.text for one in messages_of(later)] == ["go on"]
    assert silent_of(later) == {"event_msg/user_message, repeats a response_item": 1}


def test_host_text(tmp_path: Path) -> None:
    found = read(
        tmp_path / "rollout.jsonl",
        said("user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>"),
        said("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>be brief</INSTRUCTIONS>"),
        said("developer", "<permissions instructions>ask</permissions instructions>"),
        line("compacted", message="summary of what was"),
        said(
            "user",
            "\n# Files mentioned by the user:\n\n## a.txt: /a.txt\n\n## My request for Codex:\nread it\n",
        ),
    )
    assert [one.kind for one in found] == [
        "injected",
        "injected",
        "injected",
        "injected",
        "injected",
        "message",
    ]
    assert found[-1].text == "read it\n"
    assert found[-1].id == f"{found[-1].whole}@{len(found[-2].text)}"


def test_calls_and_outputs(tmp_path: Path) -> None:
    image = "data:image/png;base64,aGk="
    found = read(
        tmp_path / "rollout.jsonl",
        line("turn_context", model="gpt-5", cwd="/w"),
        line(
            "response_item",
            type="function_call",
            name="js",
            namespace="mcp__x__",
            arguments='{"a":  1}',
            call_id="c1",
        ),
        line("response_item", type="function_call_output", call_id="c1", output="two\n"),
        line("response_item", type="custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2"),
        line(
            "response_item",
            type="custom_tool_call_output",
            call_id="c2",
            output={"content": "ok", "success": True},
        ),
        line("response_item", type="local_shell_call", action={"command": ["ls"]}, call_id="c3"),
        line(
            "response_item",
            type="function_call_output",
            call_id="c3",
            output=[{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": image}],
        ),
        line("response_item", type="web_search_call", status="completed", action={"query": "x"}),
        line("response_item", type="ghost_snapshot", ghost_commit={}),
        line("event_msg", type="token_count", info=None),
    )
    assert [(one.id if one.id.startswith("c") else "", one.tool, one.text) for one in found] == [
        ("c1", "mcp__x__js", '{"a":  1}'),
        ("c1#output", "mcp__x__js", "two\n"),
        ("c2", "apply_patch", "*** Begin"),
        ("c2#output", "apply_patch", "ok"),
        ("c3", "local_shell", '{"command": ["ls"]}'),
        ("c3#output", "local_shell", "seen"),
        ("", "web_search", '{"query": "x"}'),
    ]
    assert all(one.kind == "tool" and one.metadata["model"] == "gpt-5" for one in found)
    assert found[5].attachments[0].data == b"hi"
    assert found[1].parent == "c1"


def test_a_fork_keeps_its_own_session(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    meta = line("session_meta", id="new", forked_from_id="old")
    found = read(path, meta, line("session_meta", id="old"), said("user", "hello"))
    assert [one.session for one in found] == ["new"]
    infos = [event for event in codex(path).read() if isinstance(event, SessionInfo)]
    assert [(one.id, one.parent) for one in infos] == [("new", "old")]


def test_the_older_form(tmp_path: Path) -> None:
    path = tmp_path / f"rollout-2025-05-11-{SESSION}.jsonl"
    records = [
        {"id": SESSION, "timestamp": "2025-05-11T10:00:00Z", "instructions": "be brief"},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
    ]
    found = read(path, *(json.dumps(one) + "\n" for one in records))
    assert [(one.kind, one.text) for one in found] == [
        ("injected", "be brief"),
        ("message", "hi"),
        ("tool", "{}"),
    ]
    assert Codex().detect(path.name, path.read_bytes())
