"""Whatever stands in a file, no format raises, and what it delivers is well formed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.mine.formats import Checkpoint, Event, Message, Transcript, formats
from castle.mine.formats.container import Single

WORDS = st.sampled_from(
    "type message uuid sessionId content role user assistant text thinking tool_use tool_result input "
    "id name summary payload response_item event_msg user_message session_meta function_call output "
    "mapping parent children author parts content_type current_node chat_messages sender uuid "
    "attachments files ts thread_ts subtype messages toolCalls thoughts gemini $set $rewindTo data "
    "progress agent_progress system attachment queue-operation call_id arguments reasoning compacted "
    "turn_context metadata user_id bot_message edited 2026-01-01T00:00:00Z 1452837318.000002 image "
    "source base64 functionResponse response isMeta ".split()
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | WORDS
    | st.text(alphabet=st.characters(), max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=7),
    max_leaves=25,
)
FORMATS = st.sampled_from([one for one in formats() if one.name != "opencode"])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random") / "random.jsonl"


def check(events: list[Event], size: int) -> None:
    whole = ""
    for event in events:
        if isinstance(event, Checkpoint):
            assert 0 <= event.offset <= size
            json.dumps(event.state)
        if isinstance(event, Message):
            assert event.text or event.attachments
            assert event.role in ("user", "assistant", "system", "tool")
            assert event.id == event.whole or (
                event.whole == whole and event.id.startswith(f"{event.whole}@")
            )
            whole = event.whole


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(WORDS, VALUES, max_size=8), min_size=1, max_size=4), FORMATS)
def test_random_json_lines(path: Path, values: list[Any], format: Any) -> None:
    data = "".join(json.dumps(one) + "\n" for one in values).encode()
    path.write_bytes(data)
    format.detect(path.name, data[:65536])
    check(list(Transcript(Single(path), path.name, format).read()), len(data))


@settings(max_examples=200, deadline=None)
@given(VALUES, FORMATS)
def test_random_documents(path: Path, value: Any, format: Any) -> None:
    data = json.dumps(value, indent=1).encode()
    path.write_bytes(data)
    format.detect(path.name, data[:65536])
    check(list(Transcript(Single(path), path.name, format).read()), len(data))


SHAPED: dict[str, dict[str, Any]] = {
    "claude-code": {
        "type": st.sampled_from(
            ["user", "assistant", "progress", "attachment", "queue-operation", "summary"]
        ),
        "sessionId": SCALARS,
        "message": st.fixed_dictionaries({"content": VALUES}),
        "data": st.fixed_dictionaries({"type": st.just("agent_progress"), "message": VALUES}),
        "attachment": VALUES,
        "content": VALUES,
    },
    "codex": {
        "type": st.sampled_from(["session_meta", "response_item", "event_msg", "turn_context", "compacted"]),
        "payload": st.fixed_dictionaries(
            {
                "type": st.sampled_from(["message", "reasoning", "x_call", "x_output", "user_message"])
                | SCALARS,
                "role": WORDS,
                "content": VALUES,
                "output": VALUES,
                "summary": VALUES,
                "message": VALUES,
            }
        ),
    },
    "gemini-cli": {"sessionId": "s", "projectHash": "p", "messages": st.lists(VALUES, max_size=3)},
    "claude-ai": {"uuid": "c", "chat_messages": st.lists(VALUES, max_size=4)},
    "chatgpt": {"id": "c", "mapping": st.dictionaries(WORDS, VALUES, max_size=5)},
    "slack": {"type": "message", "ts": "1.1", "attachments": VALUES, "files": VALUES, "text": SCALARS},
}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_random_values_in_the_right_places(path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SHAPED)))
    format = next(one for one in formats() if one.name == name)
    shape = SHAPED[name]
    record: dict[str, Any] = {
        key: data.draw(part) if isinstance(part, st.SearchStrategy) else part for key, part in shape.items()
    }
    raw = json.dumps(record if format.incremental and name != "gemini-cli" else [record]).encode() + b"\n"
    path.write_bytes(raw)
    check(list(Transcript(Single(path), path.name, format).read()), len(raw))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), FORMATS)
def test_random_bytes(path: Path, data: bytes, format: Any) -> None:
    path.write_bytes(data)
    format.detect(path.name, data)
    check(list(Transcript(Single(path), path.name, format).read()), len(data))
