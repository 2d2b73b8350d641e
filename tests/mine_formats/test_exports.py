"""Every real export: counts that were taken by other means (jq, grep, awk), and exact texts."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from castle.mine.formats import Message, SessionInfo, SessionTitle, Transcript
from tests.mine_formats.support import (
    broken_of,
    events_of,
    kinds_of,
    messages_of,
    sessions_of,
    silent_of,
    transcripts,
    wholes,
)

# Blocks per file, counted with jq:
#   select(.type=="user" or .type=="assistant") | .message.content (a string is one text) | .type
# and the user's texts sorted by their beginnings (<ide_opened_file>, <command-, <local-command-stdout>,
# "[Request interrupted", "Caveat:", isMeta) into host text and words. Tool results without content
# (`.content == ""`) hold nothing and are left out.
CLAUDE = {
    "simonw_sample_session.jsonl": (1, {"message": 4, "tool": 4}, 0),
    "daaain_todowrite_examples.jsonl": (1, {"message": 5, "tool": 6}, 0),
    "daaain_representative_messages.jsonl": (1, {"message": 7, "tool": 4}, 0),
    # 3 words, 2 strings, 2 assistant texts and the words in <command-args>; 1 caveat, 1 stdout, 2 halves of
    # the command around its arguments; 3 calls and 1 result. Broken: lines 10 and 13 to 16.
    "daaain_edge_cases.jsonl": (2, {"message": 8, "injected": 4, "tool": 4}, 5),
    # 2 of 5 strings are words, with 2 texts and 1 string of the assistant and the interrupted one aside:
    # 3 + 3 messages; command, interrupted, meta and a queued <task-notification> are the host's.
    "polylogue_claude-normalization-main.jsonl": (
        2,
        {"message": 6, "thinking": 1, "tool": 5, "injected": 4, "subagent": 1},
        0,
    ),
    "moredip/edit-tool-variants.jsonl": (1, {"message": 5, "tool": 8}, 2),
    # The subagent's prompt, call and result stand in three progress records of the main file too.
    "moredip/4b2030ed-5563-49ea-b703-6a002f2d3cc8.jsonl": (
        1,
        {"message": 2, "thinking": 2, "tool": 5, "subagent": 1},
        0,
    ),
    "moredip/4b2030ed-5563-49ea-b703-6a002f2d3cc8/subagents/agent-a2018e5.jsonl": (
        1,
        {"subagent": 2, "tool": 2},
        0,
    ),
    # 4 words, 5 assistant texts, 1 record that is only an image.
    "moredip/images-in-user-messages.jsonl": (
        1,
        {"message": 10, "thinking": 4, "tool": 2, "injected": 6},
        2,
    ),
    # 12 words + 58 assistant texts; 4 commands, 6 opened files, 5 interrupted, 4 meta, 1 stdout and a queued
    # <task-notification> followed by a sentence; 110 calls, 109 results of which 6 are empty.
    "moredip/general-tool-calls.jsonl": (
        1,
        {"message": 70, "thinking": 98, "tool": 213, "injected": 21, "queued": 1},
        2,
    ),
    "codemie/-tmp-private/4c2ddfdc-b619-4525-8d03-1950fb1b0257.jsonl": (1, {"message": 7, "tool": 11}, 0),
    "codemie/-tmp-private/agent-36541525.jsonl": (1, {"subagent": 2}, 0),
    "codemie/-tmp-private/agent-50243ee8.jsonl": (1, {"subagent": 2}, 0),
    "codemie/incremental-simple/turn-1.jsonl": (1, {"message": 2, "thinking": 1}, 0),
    # 2 calls, 2 results of two texts each.
    "codemie/incremental-simple/turn-2.jsonl": (1, {"message": 10, "thinking": 6, "tool": 6}, 0),
    "codemie/incremental-subagents/turn-1.jsonl": (1, {"message": 3, "thinking": 7, "tool": 14}, 0),
    "codemie/incremental-subagents/turn-2.jsonl": (1, {"message": 6, "thinking": 11, "tool": 28}, 0),
    "codemie/incremental-subagents/turn-1/subagents/agent-a485154.jsonl": (
        1,
        {"subagent": 4, "tool": 40},
        0,
    ),
    "codemie/incremental-subagents/turn-2/subagents/agent-a485154.jsonl": (
        1,
        {"subagent": 4, "tool": 40},
        0,
    ),
}

OTHERS = {
    # wc: 99 lines. 3 user_message + 3 assistant messages; 38 calls + 38 outputs; the base instructions and
    # the text in front of "## My request for Codex:"; 16 reasoning records are encrypted.
    "codex": (1, {"message": 6, "tool": 76, "injected": 2}),
    # Non-empty contents, "subject":, "displayName": (calls) and "functionResponse": (results) with grep -c.
    "gemini_cli/agentsview_tool_calls.json": (1, {"message": 2, "thinking": 1, "tool": 1}),
    "gemini_cli/codemie/gemini/logs.json": (1, {"message": 3}),
    "gemini_cli/codemie/gemini/session-2025-12-01T21-45-5b959dae.json": (
        1,
        {"message": 6, "thinking": 18, "tool": 20},
    ),
    "gemini_cli/codemie/gemini/session-2026-01-16T11-01-file-ops-37b7abef.json": (
        1,
        {"message": 10, "tool": 28},
    ),
    # Nodes with a message, by role: 4 + 3 words and a second branch, tool, system.
    "chatgpt/gbrain_chatgpt-conversations.json": (3, {"message": 7, "tool": 1, "injected": 1}),
    # user_editable_context has two texts; the call is the node with a recipient.
    "chatgpt/polylogue_native-conversation-v1.json": (
        1,
        {"injected": 2, "message": 3, "thinking": 2, "tool": 2},
    ),
    # 5 parts; text, content, result, summary: 4 + 3 + 2 - 1 texts; 8 thoughts with summary and content.
    "chatgpt/polylogue_sample-00.json": (1, {"tool": 13, "thinking": 16}),
    # 6 turns; 1 tool_use, 1 block without text.
    "claude_ai/osteele_business-strategy.json": (1, {"message": 6, "tool": 2}),
    "claude_ai/osteele_claude-bakery-chat.json": (1, {"message": 4}),
    "claude_ai/osteele_conversations_export_list.json": (2, {"message": 6}),
    "claude_ai/osteele_debugging.json": (1, {"message": 4}),
    # 8 blocks, each with text, thinking and input, with 26 content items; 2 of 3 `text`s are in no block;
    # 11 attachments with extracted_content.
    "claude_ai/polylogue_sample-00.json": (
        1,
        {"message": 10, "thinking": 8, "tool": 34, "attachment": 11},
    ),
    # 158 entries of which 11 are joins and added integrations; 64 texts, and 189 strings in 102 attachments.
    "slack": (2, {"injected": 11, "message": 242}),
    # Parts: 2 texts, 2 tools with input and output, 1 step.
    "opencode": (1, {"message": 2, "tool": 4}),
    # awk over the first characters of lines: 46 headers (and the lines before the first one), 86 groups of
    # "####", 165 of ">", 103 of others.
    "aider": (47, {"injected": 47, "message": 189, "tool": 165}),
}


@pytest.mark.parametrize("name", CLAUDE)
def test_claude_code_counts(exports: Path, name: str) -> None:
    sessions, kinds, broken = CLAUDE[name]
    events = events_of(exports / "claude_code" / name)
    assert len(sessions_of(events)) == sessions
    assert kinds_of(events) == kinds
    assert len(broken_of(events)) == broken


@pytest.mark.parametrize("name", OTHERS)
def test_other_counts(exports: Path, name: str) -> None:
    sessions, kinds = OTHERS[name]
    events = events_of(exports / name)
    assert len(sessions_of(events)) == sessions
    assert kinds_of(events) == kinds
    assert not broken_of(events)


def test_every_export_is_recognised(exports: Path) -> None:
    with_format = Counter(one.format.name for one in transcripts(exports))
    # find claude_code -name '*.jsonl' | wc -l, and so on; opencode is one session of seven files.
    assert with_format == {
        "claude-code": 19,
        "claude-ai": 5,
        "gemini-cli": 4,
        "chatgpt": 3,
        "codex": 1,
        "slack": 1,
        "opencode": 1,
        "aider": 1,
    }


def test_a_log_beside_its_session_is_not_delivered_twice(exports: Path) -> None:
    found = transcripts(exports / "gemini_cli" / "codemie")
    log = next(one for one in found if one.name.endswith("logs.json"))
    events = list(log.read())
    assert not messages_of(events)
    assert silent_of(events) == {"log entry, repeats the session's file": 3}


def _json_lines(path: Path) -> list[dict[str, Any]]:
    records = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def _claude_texts(record: dict[str, Any]) -> list[str]:
    """Collect what a record says, by the shape of the export alone."""
    if record.get("type") == "queue-operation":
        return [record["content"]] if record.get("content") else []
    if record.get("type") == "progress" and record["data"]["type"] == "agent_progress":
        return _claude_texts(record["data"]["message"])
    if record.get("type") not in ("user", "assistant"):
        return []
    message = record["message"]
    if isinstance(message, str):
        return [message]
    content = message.get("content", [])
    texts: list[str] = []
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            texts.append(block)
        elif block["type"] in ("text", "thinking"):
            texts.append(block[block["type"]])
        elif block["type"] == "tool_use":
            texts.append(json.dumps(block["input"], ensure_ascii=False))
        elif block["type"] == "tool_result":
            inner = block["content"]
            texts += [inner] if isinstance(inner, str) else [part["text"] for part in inner]
    return [text for text in texts if text]


@pytest.mark.parametrize("name", CLAUDE)
def test_claude_code_texts_are_exact(exports: Path, name: str) -> None:
    path = exports / "claude_code" / name
    expected = [text for record in _json_lines(path) for text in _claude_texts(record)]
    assert [text for text in wholes(messages_of(events_of(path))) if text] == expected


def test_codex_texts_are_exact(exports: Path) -> None:
    path = next((exports / "codex").iterdir())
    expected = []
    for record in _json_lines(path):
        body = record["payload"]
        expected += [body["base_instructions"]["text"]] if "base_instructions" in body else []
        expected += [body[key] for key in ("message", "arguments", "output") if key in body]
        expected += [part["text"] for part in body.get("content") or []]
    assert wholes(messages_of(events_of(path))) == expected


@pytest.mark.parametrize("name", [name for name in OTHERS if name.startswith("gemini_cli/codemie/gemini/s")])
def test_gemini_texts_are_exact(exports: Path, name: str) -> None:
    document = json.loads((exports / name).read_text(encoding="utf-8"))
    expected = []
    for turn in document["messages"]:
        expected += [thought["description"] for thought in turn.get("thoughts", [])]
        expected += [turn["content"]] if turn["content"] else []
        for call in turn.get("toolCalls", []):
            expected.append(json.dumps(call["args"], ensure_ascii=False))
            for part in call["result"]:
                response = part["functionResponse"]["response"]
                plain = response.get("output", response.get("error"))
                expected.append(plain if len(response) == 1 else json.dumps(part, ensure_ascii=False))
    assert wholes(messages_of(events_of(exports / name))) == expected


def test_chatgpt_texts_are_exact(exports: Path) -> None:
    path = exports / "chatgpt" / "gbrain_chatgpt-conversations.json"
    expected = [
        node["message"]["content"]["parts"][0]
        for conversation in json.loads(path.read_text(encoding="utf-8"))
        for node in conversation["mapping"].values()
        if node["message"]
    ]
    assert wholes(messages_of(events_of(path))) == expected


def test_claude_ai_texts_are_exact(exports: Path) -> None:
    for path in sorted((exports / "claude_ai").glob("osteele*")):
        document = json.loads(path.read_text(encoding="utf-8"))
        said = {message.text for message in messages_of(events_of(path))}
        for conversation in document if isinstance(document, list) else [document]:
            for turn in conversation["chat_messages"]:
                assert not turn["text"] or turn["text"] in said
                for block in turn["content"]:
                    text = block.get("text", "")
                    assert text in said or text in turn["text"]


def test_slack_texts_are_exact(exports: Path) -> None:
    path = exports / "slack" / "hfaran_testarchive.zip"
    expected: list[tuple[str, str]] = []
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if "/" in name and name.endswith(".json"):
                entries = json.loads(archive.read(name))
                expected += [(entry["ts"], entry["text"]) for entry in entries if entry["text"]]
    found = [(message.id, message.text) for message in messages_of(events_of(path)) if "#" not in message.id]
    assert found == expected


def test_aider_messages_are_the_file(exports: Path) -> None:
    path = exports / "aider" / "aider_chat-history.md"
    joined = "".join(message.text for message in messages_of(events_of(path)))
    assert joined.encode("utf-8") == path.read_bytes()


def test_a_second_reading_gives_the_same_ids(exports: Path) -> None:
    for transcript in transcripts(exports / "claude_code"):
        again = messages_of(transcript.read())
        assert [one.id for one in messages_of(transcript.read())] == [one.id for one in again]


def test_ids_name_one_text_unless_the_file_repeats_them(exports: Path) -> None:
    repeated = set()
    for transcript in transcripts(exports):
        if transcript.box.path.suffix == ".zip":
            continue
        seen: dict[tuple[str, str], str] = {}
        for message in messages_of(transcript.read()):
            key = (message.session, message.id)
            if seen.setdefault(key, message.text) != message.text:
                repeated.add(message.id)
    # Two records of daaain_edge_cases share edge_011, two of polylogue_claude-normalization-main main-u1.
    assert repeated == {"edge_011", "main-u1"}


def test_what_a_session_says_of_itself(exports: Path) -> None:
    events = events_of(exports / "claude_code" / "moredip" / "general-tool-calls.jsonl")
    info = next(event for event in events if isinstance(event, SessionInfo))
    assert (info.cwd, info.git_branch) == ("/Users/pete/git/moredip/session-share", "main")
    assert info.started_at == 1_769_009_416_888_000  # 2026-01-21T15:30:16.888Z, line 6
    titles = [event.title for event in events if isinstance(event, SessionTitle)]
    assert titles[0] == "Claude Code Session-Share Plugin Implementation"
    assert len(titles) == 4


def test_images_go_to_the_words_of_their_record(exports: Path) -> None:
    events = events_of(exports / "claude_code" / "moredip" / "images-in-user-messages.jsonl")
    with_files = [message for message in messages_of(events) if message.attachments]
    assert [message.text for message in with_files] == ["what's this an image of?", ""]
    for message in with_files:
        file = message.attachments[0]
        assert file.media_type == "image/png"
        assert file.data is not None and file.data.startswith(b"\x89PNG")
        assert len(file.data) == 24021  # 32028 base64 characters, three of four, without padding


def test_a_thinking_block_and_a_tool_name_are_kept(exports: Path) -> None:
    path = exports / "claude_code" / "polylogue_claude-normalization-main.jsonl"
    by_id = {message.id: message for message in messages_of(events_of(path))}
    assert by_id["main-a1"].kind == "thinking"
    assert by_id["main-a1#b1"].text == "Running the focused checks."
    assert (by_id["main-a1#b2"].tool, by_id["main-a1#b2"].role) == ("Bash", "assistant")
    assert (by_id["main-bg-start"].tool, by_id["main-bg-start"].role) == ("Bash", "tool")
    assert by_id["main-context"].kind == "injected"


def test_branches_of_a_chatgpt_conversation(exports: Path) -> None:
    found = messages_of(events_of(exports / "chatgpt" / "gbrain_chatgpt-conversations.json"))
    hidden = [message.id for message in found if not message.shown]
    assert hidden == ["n2a"]
    assert next(message for message in found if message.id == "n1").parent == ""
    assert next(message for message in found if message.id == "n4").parent == "n3"


def _all(exports: Path) -> list[tuple[Transcript, Message]]:
    return [(one, message) for one in transcripts(exports) if one.name for message in messages_of(one.read())]


def test_nothing_has_a_time_out_of_its_years(exports: Path) -> None:
    low, high = 1_400_000_000_000_000, 1_800_000_000_000_000
    for transcript, message in _all(exports):
        known = message.timestamp is None or low < message.timestamp < high
        assert known, (transcript.address, message.id, message.timestamp)
