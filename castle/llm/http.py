"""One JSON request to a server, bounded in time and size, that never tells its key."""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from castle.llm.base import MAX_ANSWER_BYTES, MORE_TIME, LlmError, UnansweredError, one_line
from castle.llm.guard import ForbiddenError, checked_addresses, proxied
from castle.llm.waiting import in_background

if TYPE_CHECKING:
    import httpx

CONNECT_S = 0.25
"""Seconds in which a server on this machine takes a connection, or is not there."""


class AnsweredError(LlmError):
    """The server answered with another status than 200, which is in ``status``."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def read_url(text: str, settings: str = "llm") -> str:
    """Return the URL of a server without a slash at its end; raises LlmError unless it is http or https.

    ``settings`` is what the names of the settings of such servers begin with.
    """
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise LlmError(
            f"{settings}_endpoint is not the http or https URL of a server; such as "
            f"castle config set {settings}_endpoint http://localhost:1234/v1"
        )
    return url


def is_local(url: str) -> bool:
    """Say whether the URL leads to this machine itself: a loopback address or ``localhost``."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@dataclass(frozen=True, slots=True)
class Server:
    """A server of models: its name for messages, its URL, and the headers that open it.

    ``secrets`` are the values that no message may show. ``settings`` is what the names of the settings that
    help begin with. An answer has ``most_bytes`` at most. ``allowed`` names hosts and networks beside this
    machine and the open internet that may be asked (see ``castle.llm.guard``); None lets any be asked.
    """

    label: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    settings: str = "llm"
    most_bytes: int = MAX_ANSWER_BYTES
    allowed: tuple[str, ...] | None = None

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def local(self) -> bool:
        """Whether it is on this machine."""
        return is_local(self.url)

    @property
    def address(self) -> str:
        """The URL as far as messages may show it."""
        return f"{self._parts.scheme}://{self._parts.netloc.rpartition('@')[2]}"

    def __str__(self) -> str:
        return f"{self.label} at {self.address}"

    def shown(self, text: str) -> str:
        """Return the text on one line, without the secrets."""
        for secret in (*self.secrets, self._parts.password):
            if secret:
                text = text.replace(secret, "***")
        return one_line(text)

    def listening(self) -> str | None:
        """Return None when something takes connections there, else the reason."""
        port = self._parts.port or (443 if self._parts.scheme == "https" else 80)
        reason = ""
        try:
            for host in self._addresses() or [self._parts.hostname or ""]:
                try:
                    socket.create_connection((host, port), CONNECT_S).close()
                    return None
                except (OSError, ValueError) as error:
                    reason = self.shown(str(error))
        except ForbiddenError as error:
            return str(error)
        except OSError as error:
            reason = self.shown(str(error))
        return f"{self} is not running ({reason})"

    def get(self, path: str, seconds: float) -> dict[str, Any]:
        """Return the JSON object that a GET answers within ``seconds``; raises LlmError."""
        return self._object(*self._send("GET", path, None, time.monotonic() + seconds, seconds))

    def post(
        self,
        path: str,
        payload: Mapping[str, Any],
        seconds: float,
        optional: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that a POST answers within ``seconds`` all in all; raises LlmError.

        ``optional`` is sent along, and left out in a second try when the server answers 400: not every server
        knows every field.
        """
        deadline = time.monotonic() + seconds
        reply = self._send("POST", path, {**payload, **(optional or {})}, deadline, seconds)
        if reply[0] == 400 and optional:
            reply = self._send("POST", path, payload, deadline, seconds)
        return self._object(*reply)

    def _send(
        self, method: str, path: str, payload: Mapping[str, Any] | None, deadline: float, seconds: float
    ) -> tuple[int, bytes]:
        # A timeout of httpx counts from byte to byte, and a name look-up has none: so the call runs beside,
        # and its connection is cut when the time is over.
        left = max(deadline - time.monotonic(), 0.001)
        line = _Line()
        reply = in_background(lambda: self._exchange(method, path, payload, left, line))
        try:
            return reply.result(left)
        except TimeoutError:
            help_ = f"; {MORE_TIME}" if self.settings == "llm" else ""
            raise UnansweredError(f"{self} did not answer within {seconds:g} s{help_}") from None
        finally:
            line.cut()

    def _exchange(
        self, method: str, path: str, payload: Mapping[str, Any] | None, seconds: float, line: _Line
    ) -> tuple[int, bytes]:
        import httpx

        # ASCII, so that half a surrogate pair in a text is no reason to fail.
        content = None if payload is None else json.dumps(payload).encode("ascii")
        headers = {"accept-encoding": "identity", "content-type": "application/json", **self.headers}
        plain = self.local and self._parts.scheme == "http"
        received = bytearray()
        try:
            with (
                # On this machine no proxy is asked; certificates take a tenth of a second to load.
                httpx.Client(
                    trust_env=not self.local, verify=not plain, follow_redirects=False, timeout=seconds
                ) as client,
                closing(self._reply(client, method, path, content, headers, line)) as response,
            ):
                for chunk in response.iter_raw():
                    received += chunk
                    if len(received) > self.most_bytes:
                        raise LlmError(f"{self} answered more than {self.most_bytes:,} bytes")
                return response.status_code, bytes(received)
        # The environment may name a proxy that is no URL, or of a kind that needs another package.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
            reason = self.shown(str(error)) or type(error).__name__
            raise UnansweredError(f"{self} cannot be asked: {reason}") from None

    def _reply(
        self,
        client: httpx.Client,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        line: _Line,
    ) -> httpx.Response:
        """Send the request to one of the addresses that were judged, the first that takes a connection."""
        import httpx

        url = httpx.URL(self.url + path)
        addresses = self._addresses()
        extensions: dict[str, Any] = {"trace": line.notice}
        if addresses:
            # The certificate has to be that of the name, and the server may hold several.
            extensions["sni_hostname"] = url.raw_host.decode("ascii")
            headers = {**headers, "host": url.netloc.decode("ascii")}
        targets = [url.copy_with(host=address) for address in addresses] or [url]
        for target in targets[:-1]:
            with suppress(httpx.ConnectError):
                return client.send(
                    _request(client, method, target, content, headers, extensions), stream=True
                )
        return client.send(_request(client, method, targets[-1], content, headers, extensions), stream=True)

    def _addresses(self) -> list[str]:
        """Return the addresses to connect to, none where the name is to be looked up by whoever connects.

        Raises ForbiddenError, or OSError when the name is unknown.
        """
        if self.allowed is None:
            return []
        try:
            addresses = checked_addresses(self.url, self.allowed)
        except ForbiddenError as error:
            raise ForbiddenError(f"{self} is not asked: {error}") from None
        except OSError:
            if self.local or not proxied(self.url):
                raise
            return []
        return addresses if self.local or not proxied(self.url) else []

    def _object(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if status == 200 and isinstance(found, dict):
            return found
        if status == 200:
            raise LlmError(
                f"{self} did not answer with a JSON object: {self.shown(_text(body)) or 'nothing'}"
            )
        help_ = ""
        if status in (401, 403):
            help_ = f"; set the key: castle config set {self.settings}_api_key -"
        elif 300 <= status < 400:
            help_ = f"; redirects are not followed: castle config set {self.settings}_endpoint URL"
        detail = self.shown(_detail(found) or _text(body))
        raise AnsweredError(f"{self} answered {status}{': ' if detail else ''}{detail}{help_}", status)


def _request(
    client: httpx.Client,
    method: str,
    url: httpx.URL,
    content: bytes | None,
    headers: Mapping[str, str],
    extensions: Mapping[str, Any],
) -> httpx.Request:
    return client.build_request(method, url, content=content, headers=headers, extensions=dict(extensions))


class _Line:
    """The connection of one call, for the thread that has waited long enough."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._over = False

    def notice(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket when httpcore reports a new connection, or the same one under TLS."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            found = info["return_value"].get_extra_info("socket")
            self._socket = found if isinstance(found, socket.socket) else None
            if self._over:
                self.cut()

    def cut(self) -> None:
        """End the connection, so that a thread that reads from it comes back."""
        self._over = True
        if self._socket is not None:
            with suppress(OSError):
                # Not the method of a TLS socket, which takes away the state that the reader is using.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _text(body: bytes) -> str:
    return body[:2000].decode("utf-8", "replace")


def _detail(found: Any) -> str:
    """Return the message of an error as the four wire formats write it, or nothing."""
    error = found.get("error", found.get("message")) if isinstance(found, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""
