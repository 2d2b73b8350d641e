from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from castle.mcp.lines import readable
from tests.mcp.conftest import Wire


def not_understood(line: str) -> Exception:
    with pytest.raises(ValidationError) as error:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    return error.value


def test_half_a_pair_is_read_as_it_stands() -> None:
    line = r'{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":"b\ud83d \\ud83d","\udfff":1}}' + "\n"
    item = readable(not_understood(line))
    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCRequest)
    assert item.message.params == {"a": "b\ud83d \\ud83d", "\udfff": 1}


@pytest.mark.parametrize(
    "line",
    ["", "nonsense", "{}", "[]", r'{"jsonrpc":"2.0","id":3,"a":"\ud83d"', "[" * 100_000],
)
def test_what_is_no_message_stays_one(line: str) -> None:
    error = not_understood(line)
    assert readable(error) is error


def test_anything_else_is_as_it_was() -> None:
    for item in (OSError("gone"), SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="x"))):
        assert readable(item) is item


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("castle_traverse", {"start_room": "caf\ud83d"}),
        (
            "castle_create_tunnel",
            {"source_wing": "\ud800", "source_room": "a", "target_wing": "b", "target_room": "c"},
        ),
        ("castle_diary_read", {"agent_name": "keeper", "wing": "\ud800"}),
        ("castle_find_tunnels", {"wing_a": "\ud800"}),
        ("castle_get_drawer", {"drawer_id": "x" * 50_000}),
        ("castle_search", {"query": "x", "since": "9" * 50_000}),
        ("castle_wake_up", {"wing": "x" * 50_000}),
    ],
)
def test_what_an_answer_repeats_is_unicode_and_short(
    wire: Callable[..., Wire], root: Path, tool: str, arguments: dict[str, str]
) -> None:
    server = wire("--palace", str(root), "--tools", "all")
    server.initialize()
    answer = server.request("tools/call", name=tool, arguments=arguments)
    assert "Error executing tool" not in str(answer)
    assert len(json.dumps(answer).encode()) <= 16_000
    assert server.request("ping")["result"] == {}


@pytest.mark.parametrize(
    "line",
    ['{"jsonrpc":"2.0","id":7,"method":"pi\\ud83dng"}', '{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}'],
)
def test_a_request_that_cannot_be_answered_does_no_harm(
    wire: Callable[..., Wire], root: Path, line: str
) -> None:
    server = wire("--palace", str(root))
    server.initialize()
    assert server.process.stdin is not None
    server.process.stdin.write(line.encode() + b"\n")
    assert server.request("ping")["result"] == {}


def test_an_offset_beyond_every_list_is_refused(wire: Callable[..., Wire], root: Path) -> None:
    server = wire("--palace", str(root), "--tools", "all")
    server.initialize()
    for tool, more in (("castle_list_drawers", {}), ("castle_diary_read", {"agent_name": "keeper"})):
        answer = server.request("tools/call", name=tool, arguments={"offset": 10**30, **more})
        assert answer["error"]["code"] == -32602
