r"""Reading lines that the SDK gives up on: half a surrogate pair, written ``\ud83d``, is legal JSON.

Hosts send it where they cut a text inside a character. The SDK would not answer such a request at all.
"""

from __future__ import annotations

import json
from contextvars import Context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.shared._context_streams import ContextReceiveStream

Item = SessionMessage | Exception


class Lines:
    """The messages of a stream of the SDK, with those among them that Python can read and the SDK cannot."""

    def __init__(self, stream: ContextReceiveStream[Item]) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Context | None:
        """The context that the last message was sent in."""
        return self._stream.last_context

    async def receive(self) -> Item:
        """Return the next message, or what is wrong with it."""
        return readable(await self._stream.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return readable(await anext(self._stream))

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def readable(item: Item) -> Item:
    """Return a message, read in another way where it was not understood; else what is wrong with it."""
    if not isinstance(item, ValidationError):
        return item
    fault: Any = item.errors(include_url=False)[0]
    if fault["type"] != "json_invalid":
        return item
    try:
        found = json.loads(fault["input"])
        # What an answer has to repeat must be sendable; such a request cannot be answered.
        json.dumps([found.get(name) for name in ("id", "method")], ensure_ascii=False).encode()
        return SessionMessage(jsonrpc_message_adapter.validate_python(found, by_name=False))
    except (ValueError, RecursionError, AttributeError):
        return item
