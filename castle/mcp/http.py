"""The palace over HTTP: tools at ``/mcp``, events of hosts at ``/ingest``, behind ``castle.mcp.access``.

Requests are independent of each other: the server keeps no sessions, and a client goes on after a restart.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from castle.config.edit import LEAST_TOKEN
from castle.errors import CastleError, UsageError
from castle.mcp.access import LOOPBACK_NAMES, MOST_BODY, Access, App
from castle.mcp.ingest import PATH as INGEST
from castle.mcp.ingest import Ingest
from castle.mcp.running import Running
from castle.mcp.server import build
from castle.mcp.tools.base import Tier

_SET_TOKEN = "set one with `castle config set serve_token -`, which reads it from standard input"
_BACKLOG = 64
_GRACE_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: ``host`` an IP address or localhost, ``port`` 0 for any that is free.

    ``names`` are further ones that clients may call the server by. At ``also``, a port of 127.0.0.1, the same
    is answered.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    path: str = "/mcp"
    names: Sequence[str] = ()
    also: int | None = None


def check(address: Address, token: str | None) -> None:
    """Raise UsageError unless an address can be served with this token, or without one."""
    ip = _ip(address.host)
    own = address.path in ("/health", INGEST)
    if not address.path.startswith("/") or own or set("{}?#%") & set(address.path):
        raise UsageError(
            f"{address.path!r} cannot be the path: it begins with / and is not /health or {INGEST}"
        )
    if token is not None and len(token) < LEAST_TOKEN:
        raise UsageError(f"serve_token is shorter than {LEAST_TOKEN} characters: {_SET_TOKEN}")
    if token is None and not ip.is_loopback:
        raise UsageError(f"{address.host} can be reached by others, which needs a token: {_SET_TOKEN}")
    if token is None and address.names:
        raise UsageError(f"--allow-host lets others call this server, which needs a token: {_SET_TOKEN}")
    if token is None and address.also is not None:
        raise UsageError(f"--ingest-port is for {INGEST}, which needs a token: {_SET_TOKEN}")


def serve(
    palace: str | None, tier: Tier, address: Address, token: str | None, say: Callable[[str], None]
) -> int:
    """Serve until a signal comes; return 0 after SIGTERM and 130 after SIGINT.

    ``say`` is told the URL when it can be called. Raises CastleError when the address cannot be had.
    """
    check(address, token)
    with ExitStack() as stack:
        sockets = [stack.enter_context(_bound(address.host, address.port, "--port"))]
        if address.also is not None:
            sockets.append(stack.enter_context(_bound("127.0.0.1", address.also, "--ingest-port")))
        running = Running(palace)
        app = _application(running, tier, address, token)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        server = _Server(config)
        for listening, path in zip(sockets, (address.path, INGEST), strict=False):
            host, port = listening.getsockname()[:2]
            say(f"serving at http://{_bracketed(host)}:{port}{path}")
        running.start()
        try:
            server.run(sockets)
        finally:
            running.stop()
    code = 130 if signal.SIGINT in server.told else 0
    running.leave_if_busy(code)
    return code


def _application(running: Running, tier: Tier, address: Address, token: str | None) -> App:
    app = build(running.tools, tier).streamable_http_app(
        streamable_http_path=address.path,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BODY,
        # Access has looked at Host and Origin before.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    bound = _bracketed(str(_ip(address.host)))
    return Access(
        app,
        path=address.path,
        more={INGEST: Ingest(running.ingest)},
        names={bound, *LOOPBACK_NAMES},
        given=address.names,
        token=token,
    )


class _Server(uvicorn.Server):
    """A server that remembers which signal ended it, and leaves the process to its caller."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.told: list[int] = []

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals while serving."""
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.told.append(number)
        self.should_exit = True


@contextmanager
def _bound(host: str, port: int, option: str) -> Iterator[socket.socket]:
    """Listen at a port; raises CastleError that names the option by which another one is chosen."""
    ip = _ip(host)
    family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        if os.name == "posix":
            # Without it the port of a server that has just ended is taken for a minute. On Windows the same
            # option would let two servers have one port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((str(ip), port))
            listening.listen(_BACKLOG)
        except OSError as error:
            where, why = f"{_bracketed(str(ip))}:{port}", error.strerror or error
            raise CastleError(f"cannot listen at {where} ({why}): choose another {option}") from error
        yield listening


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address that a host stands for; a name may stand for anything, so only one is known."""
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError:
        raise UsageError(f"{host!r} is not an IP address: give the one to listen at, or localhost") from None


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip
