"""The server over HTTP: the official client through it, and everybody else kept out."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from castle.errors import UsageError
from castle.mcp.access import MOST_BODY, Access, Message
from castle.mcp.http import Address, check
from castle.mcp.tools import Tools
from tests.mcp.conftest import Serve

TOKEN = "correct-horse-battery-staple"


async def conversation(url: str, token: str | None = None) -> tuple[list[str], dict[str, Any]]:
    """Return the tools of a server and what one of them answers, asked by the official client."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("castle_search", {"query": "GraphQL May"})
            assert isinstance(found.structured_content, dict)
            return tools, found.structured_content


def error(response: httpx.Response) -> str:
    """Return what a refusal says, which is short JSON."""
    content = response.json()
    assert list(content) == ["error"]
    assert len(response.content) < 300
    return str(content["error"])


def test_the_official_client_works_over_http(serve: Serve) -> None:
    tools, found = anyio.run(conversation, serve().url)
    assert tools == [f"castle_{method.__name__}" for method, _ in Tools().all("standard")]
    assert any("We chose GraphQL in May." in hit["content"] for hit in found["hits"])


def test_a_set_of_tools_and_a_path_can_be_chosen(serve: Serve) -> None:
    served = serve("--tools", "core", "--path", "/agents/castle")
    assert served.url.endswith("/agents/castle")
    assert anyio.run(conversation, served.url)[0] == [
        f"castle_{method.__name__}" for method, _ in Tools().all("core")
    ]


def test_health_needs_neither_token_nor_palace(serve: Serve) -> None:
    response = httpx.get(f"{serve(token=TOKEN).base}/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_token_that_is_set_is_needed_on_loopback_too(serve: Serve) -> None:
    served = serve(token=TOKEN)
    for headers in ({}, {"authorization": f"Bearer {TOKEN}x"}, {"authorization": f"Basic {TOKEN}"}):
        response = served.post(**headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert ("is wrong" if headers else "is needed") in error(response)
        assert TOKEN not in response.text
    assert served.post(authorization=f"Bearer {TOKEN}").status_code == 200
    assert anyio.run(conversation, served.url, TOKEN)[1]["hits"]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_names_of_this_machine_are_answered(serve: Serve, name: str) -> None:
    served = serve()
    assert served.post(host=f"{name}:{served.port}").status_code == 200
    assert served.post(host=f"{name}:{served.port}", origin=f"http://{name}:{served.port}").status_code == 200


def test_strangers_are_turned_away_everywhere(serve: Serve) -> None:
    served = serve()
    here = f"127.0.0.1:{served.port}"
    for host in (
        "evil.example",
        f"evil.example:{served.port}",
        "127.0.0.1.evil.example",
        "localhost@evil",
        "",
    ):
        assert served.post(host=host).status_code == 421
        assert httpx.get(f"{served.base}/health", headers={"host": host}).status_code == 421
    for origin in ("http://evil.example", "null", "http://localhost:1", f"file://{here}", ""):
        response = served.post(host=here, origin=origin)
        assert response.status_code == 403
        assert "Origin" in error(response)


def test_errors_are_short_json(serve: Serve) -> None:
    served = serve()
    assert "/mcp" in error(httpx.get(f"{served.base}/nowhere"))
    assert httpx.get(f"{served.base}/nowhere").status_code == 404
    assert httpx.get(served.url).status_code == 405
    assert error(httpx.delete(served.url))
    assert served.post(**{"content-type": "text/plain"}).status_code == 400
    assert error(served.post(**{"content-type": "text/plain"}))


def test_a_body_without_end_is_refused(serve: Serve) -> None:
    served = serve()
    response = served.post("x" * MOST_BODY)
    assert response.status_code == 413
    assert str(MOST_BODY) in error(response)

    def pieces() -> Iterator[bytes]:
        for _ in range(MOST_BODY // 65_536 + 2):
            yield b" " * 65_536

    usual = {"accept": "application/json", "content-type": "application/json"}
    response = httpx.post(served.url, content=pieces(), headers=usual, timeout=60)
    assert response.status_code == 413
    assert error(response)
    assert served.post().status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_end_it_cleanly(serve: Serve, number: signal.Signals, expected: int) -> None:
    served = serve()
    anyio.run(conversation, served.url)
    served.process.send_signal(number)
    out, err = served.process.communicate(timeout=60)
    assert (served.process.returncode, out, err) == (expected, "", "")


def test_another_address_needs_a_token_that_is_long_enough() -> None:
    for address in (Address("0.0.0.0"), Address("192.0.2.1"), Address("::"), Address(names=("box.example",))):
        with pytest.raises(UsageError, match="castle config set serve_token"):
            check(address, None)
        with pytest.raises(UsageError, match="16 characters"):
            check(address, "fifteen-letters")
        check(address, TOKEN)
    check(Address(), None)
    check(Address("::1"), None)
    with pytest.raises(UsageError, match="16 characters"):
        check(Address(), "short")
    with pytest.raises(UsageError, match="not an IP address"):
        check(Address("box.example"), TOKEN)
    for path in ("mcp", "/health", "/a?b", "/{x}"):
        with pytest.raises(UsageError, match="path"):
            check(Address(path=path), None)


def test_a_name_that_was_allowed_is_answered_and_its_pages_are(serve: Serve) -> None:
    served = serve("--allow-host", "Box.example", token=TOKEN)
    there = {"authorization": f"Bearer {TOKEN}", "host": "box.example"}
    assert served.post(**there).status_code == 200
    assert served.post(**there, origin="https://box.example").status_code == 200
    assert served.post(**there, origin="https://other.example").status_code == 403


def test_events_are_taken_at_a_second_port_for_who_has_the_token(serve: Serve) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = serve("--ingest-port", str(port), token=TOKEN)
    told = {"content": "Buoys are painted in May", "tags": ["hook"], "session_id": "s1"}
    own = {"authorization": f"Bearer {TOKEN}"}
    for headers, status in (({}, 401), (own, 202)):
        answer = httpx.post(f"http://127.0.0.1:{port}/ingest", json=told, headers=headers, timeout=60)
        assert answer.status_code == status
    assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    assert served.post(**own).status_code == 200


def test_a_taken_port_is_one_line(root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "castle", "--palace", str(root), "serve", "--port", port],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert port in done.stderr and "--port" in done.stderr


def asked(access: Access, headers: list[tuple[bytes, bytes]], **more: object) -> int:
    """Return the status that a request gets from the checks alone; 200 when it passed them."""
    scope: Message = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, **more}
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    anyio.run(access, scope, receive, send)
    return int(sent[0]["status"])


async def welcome(scope: Message, receive: object, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_headers_that_come_twice_or_lie_are_refused() -> None:
    access = Access(welcome, path="/mcp", token=TOKEN)
    host, token = (b"host", b"localhost:1"), (b"authorization", b"Bearer " + TOKEN.encode())
    assert asked(access, [host, token]) == 200
    assert asked(access, [host, (b"authorization", b"bearer  " + TOKEN.encode())]) == 200
    assert asked(access, [host, host, token]) == 421
    assert asked(access, [token]) == 421
    assert asked(access, [host, token, token]) == 401
    assert asked(access, [host, (b"authorization", "Bearer gr\u00fcn".encode())]) == 401
    assert asked(access, [host, token, (b"origin", b"http://localhost:1"), (b"origin", b"http://x")]) == 403
    for length in (b"-1", b"many", b"9" * 40):
        assert asked(access, [host, token, (b"content-length", length)]) == 413
