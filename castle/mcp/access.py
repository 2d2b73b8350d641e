"""Who may speak to the HTTP server: the checks before any request reaches the protocol.

A browser on this machine can be made to call any address of it, by a page that has its name resolve to
127.0.0.1. So every request has to name this server in ``Host``, and one that comes from a page has to come
from this server's own. Errors are JSON: ``{"error": "..."}``.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
MOST_BODY = 4 * 1024 * 1024
"""Bytes that the body of a request may have."""
TOO_LARGE = 413

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_READ_ON_SECONDS = 2
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is an error: its status, what it says, and headers beside the usual ones."""

    status: int
    error: str
    headers: Sequence[tuple[bytes, bytes]] = ()


class Access:
    """An ASGI application that lets requests through to another one, if they may have what they ask for.

    ``names`` are those that a client may call this server by, without a port; ``given`` are the ones among
    them that the user gave, whose pages may be on another port. ``path`` is the only one there is beside
    those of ``more`` and ``/health``, which needs no ``token`` and says nothing but that somebody is there.
    Those of ``more`` cannot do without a token: what they take is kept, and not for the asking.
    """

    def __init__(
        self,
        app: App,
        *,
        path: str,
        more: Mapping[str, App] | None = None,
        names: Collection[str] = LOOPBACK_NAMES,
        given: Collection[str] = (),
        token: str | None = None,
    ) -> None:
        self._app = app
        self._path = path
        self._more = dict(more or {})
        self._given = frozenset(name.lower() for name in given)
        self._names = self._given | {name.lower() for name in names}
        self._token = token.encode() if token is not None else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or the server's own start and end."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._stranger(scope)
        if refusal is None and scope["path"] == "/health" and scope["method"] in ("GET", "HEAD"):
            await _answer(send, 200, {"status": "ok"})
            return
        refusal = refusal or self._unwelcome(scope)
        if refusal is not None:
            if refusal.status == TOO_LARGE:
                await _read_on(receive)
            await _answer(send, refusal.status, {"error": refusal.error}, refusal.headers)
            return
        await self._more.get(scope["path"], self._app)(scope, receive, _Errors(receive, send))

    def _stranger(self, scope: Message) -> Refusal | None:
        """Say what is wrong with the names in a request, if anything."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if self._name(host) is None:
            return Refusal(421, "this server does not answer to that Host; --allow-host adds a name")
        if origins and not (len(origins) == 1 and self._is_own(origins[0].lower(), host)):
            return Refusal(403, "pages of that Origin may not call this server")
        return None

    def _name(self, authority: str) -> str | None:
        """Return the name in an authority if it is one of this server's."""
        found = _AUTHORITY.fullmatch(authority)
        return found[1] if found is not None and found[1] in self._names else None

    def _is_own(self, origin: str, host: str) -> bool:
        authority = next((origin[len(scheme) :] for scheme in _SCHEMES if origin.startswith(scheme)), "")
        return authority == host or self._name(authority) in self._given

    def _unwelcome(self, scope: Message) -> Refusal | None:
        """Say why somebody who has the right names may not have what they ask for, if so."""
        if self._token is not None and not self._has_token(scope):
            given = any(name == b"authorization" for name, _ in scope["headers"])
            wrong = "the bearer token is wrong: it is serve_token of the settings of who runs this server"
            said = wrong if given else "a bearer token is needed: Authorization: Bearer ..."
            return Refusal(401, said, [(b"www-authenticate", b"Bearer")])
        if scope["path"] in self._more and self._token is None:
            said = "it needs a token of this server: `castle config set serve_token -`, then start it again"
            return Refusal(401, said, [(b"www-authenticate", b"Bearer")])
        if scope["path"] != self._path and scope["path"] not in self._more:
            return Refusal(404, f"there is nothing at that path; the protocol is at {self._path}")
        if scope["method"] != "POST":
            # A GET would wait for messages that this server never has to send.
            return Refusal(405, "only POST is taken here", [(b"allow", b"POST")])
        lengths = _values(scope, b"content-length")
        if any(not length.isdecimal() or int(length[:20]) > MOST_BODY for length in lengths):
            return Refusal(TOO_LARGE, f"a request may have {MOST_BODY} bytes", [(b"connection", b"close")])
        return None

    def _has_token(self, scope: Message) -> bool:
        assert self._token is not None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        # In a time that does not tell how much of it was right.
        return hmac.compare_digest(token.strip(), self._token) and scheme.lower() == b"bearer"


class _Errors:
    """Passes an answer on, with an error that is not JSON made so."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._start: Message | None = None
        self._text = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == TOO_LARGE:
            await _read_on(self._receive)
        if message["type"] == "http.response.start" and message["status"] >= 400:
            kinds = [value for name, value in message["headers"] if name.lower() == b"content-type"]
            if not any(b"json" in kind for kind in kinds):
                self._start = message
                return
        if self._start is None:
            await self._send(message)
            return
        self._text += message.get("body", b"")
        if not message.get("more_body"):
            kept = (b"allow", b"connection", b"retry-after")
            headers = [(name, value) for name, value in self._start["headers"] if name.lower() in kept]
            error = self._text.decode("utf-8", "replace") or "it cannot be done"
            await _answer(self._send, self._start["status"], {"error": error}, headers)


async def _read_on(receive: Receive) -> None:
    """Read what a client is still sending, for a while.

    A connection that is closed while something unread stands in it is reset, and the client may never see the
    answer.
    """
    left = 2 * MOST_BODY
    with anyio.move_on_after(_READ_ON_SECONDS):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body"):
                return


def _values(scope: Message, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


async def _answer(
    send: Send, status: int, content: object, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    body = json.dumps(content).encode()
    usual = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*usual, *headers]})
    await send({"type": "http.response.body", "body": body})
