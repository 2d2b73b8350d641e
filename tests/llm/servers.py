"""A server on loopback that answers as it is told, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    declared: int | None = None
    drip: bool = False
    drip_headers: bool = False
    hang_up: bool = False

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Answer = Callable[[Request], Reply]


class Fake:
    """What a test sees of the server."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.url = ""
        self.closing = threading.Event()

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    fake: Fake

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(method, self.path, headers, json.loads(body) if body else None)
        self.fake.requests.append(request)
        reply = self.fake.answer(request)
        self.close_connection = True
        if reply.hang_up:
            return
        content = reply.content
        head = f"HTTP/1.1 {reply.status} x\r\n".encode()
        length = len(content) if reply.declared is None else reply.declared
        named = {"content-type": "application/json", "content-length": str(length), **reply.headers}
        head += "".join(f"{name}: {value}\r\n" for name, value in named.items()).encode() + b"\r\n"
        try:
            self._write(head, reply.drip_headers)
            self._write(content, reply.drip)
        except OSError:
            pass

    def _write(self, data: bytes, drip: bool) -> None:
        if not drip:
            self.wfile.write(data)
            return
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.fake.closing.wait(0.1):
                return


@contextmanager
def serving(answer: Answer | Reply) -> Iterator[Fake]:
    """Serve on loopback; the fake says at which URL."""
    fake = Fake((lambda _: answer) if isinstance(answer, Reply) else answer)
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def said_by_ollama(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"model": "m", "message": message, "done": True, "done_reason": "stop"}


def said_by_openai(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def said_by_anthropic(text: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}


def ollama(text: str, *models: str) -> Answer:
    """Answer as an Ollama with these models that always says the text."""
    listed = {"models": [{"name": name, "model": name} for name in models or ("m:latest",)]}
    return lambda request: Reply(listed if request.path == "/api/tags" else said_by_ollama(text))
