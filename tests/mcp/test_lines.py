from __future__ import annotations

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from castle.mcp.lines import readable


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
