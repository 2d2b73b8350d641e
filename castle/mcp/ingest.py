"""``/ingest``: where hosts tell over HTTP what goes on in a session; see ``castle.mind.events`` for what."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

import anyio.to_thread

from castle.errors import CastleError, UsageError

PATH = "/ingest"
MOST_BODY = 1024 * 1024
"""Bytes that an event may have."""

Message = MutableMapping[str, Any]


class Receiving(Protocol):
    """What keeps an event: its JSON, and whether it was told on this machine; returns what is answered."""

    def __call__(self, body: object, *, local: bool) -> Mapping[str, object]:
        """Keep an event; raises CastleError where it cannot be kept, UsageError for what is none."""


class Ingest:
    """An ASGI application that answers 202 when an event is on disk, which ``keep`` sees to."""

    def __init__(self, keep: Receiving) -> None:
        self._keep = keep

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request, whose right to be here was looked at before."""
        data = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            data += message.get("body", b"")
            if len(data) > MOST_BODY:
                await _answer(send, 413, {"error": f"an event may have {MOST_BODY} bytes"})
                return
            if not message.get("more_body"):
                break
        status, said = await anyio.to_thread.run_sync(self._answered, bytes(data), _is_local(scope))
        await _answer(send, status, said)

    def _answered(self, data: bytes, local: bool) -> tuple[int, Mapping[str, object]]:
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            return 400, {"error": "the body is no JSON"}
        try:
            return 202, self._keep(body, local=local)
        except UsageError as error:
            return 400, {"error": str(error)}
        except CastleError as error:
            return 503, {"error": str(error)}


def _is_local(scope: Message) -> bool:
    client = scope.get("client")
    try:
        return client is not None and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


async def _answer(
    send: Callable[[Message], Awaitable[None]], status: int, content: Mapping[str, object]
) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
