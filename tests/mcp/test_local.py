"""The socket through which hooks ask a running server."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from castle.local import MOST_REQUEST, ask, is_ours, socket_path
from castle.mcp import listener as module
from castle.mcp.listener import Listener
from tests.mcp.conftest import Wire

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no local sockets on this platform")

Start = Callable[..., Wire]
Listen = Callable[..., Listener]
PATIENCE = 30.0


def eventually(find: Callable[[], Any]) -> Any:
    """Return what is found within half a minute."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it never came")


def request(prompt: str = "lantern", **more: object) -> dict[str, object]:
    return {"v": 1, "prompt": prompt, "cwd": "/somewhere", "max_tokens": 300, **more}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Something that looks like a palace."""
    root = tmp_path / "palace"
    root.mkdir()
    (root / "castle.db").touch()
    return root


@pytest.fixture
def listen(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listen]:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.02)
    started: list[Listener] = []

    def start(recall: module.Recall = lambda prompt, cwd, most: f"{prompt} {cwd} {most}") -> Listener:
        started.append(Listener(lambda: place, recall))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.stop()


def asked(place: Path, **more: object) -> Any:
    return eventually(lambda: ask(str(place), request(**more), 5.0))  # type: ignore[arg-type]


def raw(place: Path, data: bytes) -> bytes:
    """Send bytes to the socket and return what comes back."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(10)
        line.connect(socket_path(str(place)))
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            return line.recv(1_000_000)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def test_a_request_is_answered(place: Path, listen: Listen) -> None:
    listen()
    assert asked(place) == {"text": "lantern /somewhere 300"}
    assert asked(place, cwd=None, max_tokens=7) == {"text": "lantern None 7"}
    assert asked(place, prompt="ü\n" * 1000)["text"].startswith("ü\nü\n")


def test_only_this_user_can_reach_it(place: Path, listen: Listen) -> None:
    (place / "run").mkdir(mode=0o755)
    listen()
    asked(place)
    assert stat.S_IMODE((place / "run").stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "run" / "recall.sock").stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who asks")
def test_another_user_gets_no_answer(place: Path, listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    listen()
    asked(place)
    monkeypatch.setattr(module, "_is_own_user", lambda connection: False)
    assert ask(str(place), request(), 5.0) is None


def test_what_is_no_request_gets_an_error_and_ends_nothing(place: Path, listen: Listen) -> None:
    listen()
    asked(place)
    wrong: list[dict[str, object]] = [
        request(v=2),
        request(prompt=3),  # type: ignore[arg-type]
        request(cwd=["x"]),
        request(max_tokens=0),
        request(max_tokens=True),
        request(max_tokens=10**9),
        {},
    ]
    for each in wrong:
        answer = ask(str(place), each, 5.0)
        assert answer is not None
        assert answer["text"] == "" and answer["error"], each
    for line in (b"\xff\xfe\n", b"[1]\n", b"nonsense\n", b"\n", b"[" * 100_000 + b"\n"):
        assert json.loads(raw(place, line))["error"]
    assert raw(place, b"x" * (MOST_REQUEST + 100_000)) == b""
    assert asked(place)["text"]


def test_a_recall_that_fails_is_not_the_last(place: Path, listen: Listen) -> None:
    def recall(prompt: str, cwd: str | None, most: int) -> str:
        if prompt == "bad":
            raise ZeroDivisionError("by chance")
        return "good"

    listen(recall)
    assert asked(place, prompt="bad") == {"text": "", "error": "ZeroDivisionError: by chance"}
    assert asked(place) == {"text": "good"}


def test_who_is_slow_waits_for_nobody(place: Path, listen: Listen) -> None:
    listen()
    asked(place)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(socket_path(str(place)))
        assert asked(place)["text"]


def test_the_next_one_takes_over(place: Path, listen: Listen) -> None:
    first = listen(lambda *_: "first")
    assert asked(place) == {"text": "first"}
    listen(lambda *_: "second")
    assert asked(place) == {"text": "first"}
    first.stop()
    eventually(lambda: ask(str(place), request(), 5.0) == {"text": "second"})


def test_a_socket_that_nobody_listens_at_is_replaced(place: Path, listen: Listen) -> None:
    (place / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(socket_path(str(place)))
    assert ask(str(place), request(), 5.0) is None
    listen()
    assert asked(place)["text"]
    Path(socket_path(str(place))).unlink()
    assert asked(place)["text"]


def test_a_socket_is_gone_with_its_server(place: Path, listen: Listen) -> None:
    one = listen()
    asked(place)
    one.stop()
    assert not (place / "run" / "recall.sock").exists()
    assert ask(str(place), request(), 5.0) is None


def test_a_palace_that_comes_later_is_served(place: Path, listen: Listen) -> None:
    (place / "castle.db").unlink()
    listen()
    time.sleep(0.1)
    assert not (place / "run").exists()
    (place / "castle.db").touch()
    assert asked(place)["text"]


def test_a_long_path_has_a_short_socket(tmp_path: Path, listen: Listen, place: Path) -> None:
    deep = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 5)
    deep.mkdir(parents=True)
    place.rename(deep / "palace")
    short = socket_path(str(deep / "palace"))
    assert short.startswith(f"/tmp/castle-{os.getuid()}/")
    one = Listener(lambda: deep / "palace", lambda *_: "deep")
    one.start()
    try:
        assert asked(deep / "palace") == {"text": "deep"}
        assert stat.S_IMODE(Path(short).parent.stat().st_mode) == 0o700
    finally:
        one.stop()
    assert not Path(short).exists()


def test_a_socket_of_somebody_else_is_not_asked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "run").mkdir(mode=0o700)
    path = socket_path(str(place))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(path)
        other.listen()
        assert is_ours(path)
        (place / "run").chmod(0o755)
        assert not is_ours(path)
        (place / "run").chmod(0o700)
        monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
        assert not is_ours(path)
        assert ask(str(place), request(), 5.0) is None


@pytest.mark.parametrize("answer", [b"", b"nonsense\n", b"[1]\n", b"x" * 1_100_000, b"[" * 100_000 + b"\n"])
def test_an_answer_that_is_none_is_no_answer(place: Path, answer: bytes) -> None:
    (place / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(socket_path(str(place)))
        other.listen()

        def serve() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(65_536)
                try:
                    connection.sendall(answer)
                except OSError:
                    pass  # it has heard enough

        thread = threading.Thread(target=serve)
        thread.start()
        assert ask(str(place), request(), 5.0) is None
        thread.join()


def test_a_server_that_does_not_answer_costs_no_more_than_was_given(place: Path) -> None:
    (place / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(socket_path(str(place)))
        other.listen()
        assert ask(str(place), request(), 0.05) is None
        assert ask(str(place), request(), 0.0) is None


def test_a_running_server_recalls(wire: Start, root: Path) -> None:
    server = wire("--palace", str(root))
    server.initialize()
    sock = Path(socket_path(str(root)))
    answer = asked(root, prompt="When did we choose GraphQL for the shop?", cwd=str(root))
    assert "error" not in answer and isinstance(answer["text"], str)
    assert server.request("tools/list")["result"]["tools"]
    assert server.ended()[0] == 0
    assert not sock.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_a_server_that_dies_leaves_its_place_to_another(wire: Start, root: Path) -> None:
    servers = [wire("--palace", str(root)) for _ in range(2)]
    for server in servers:
        server.initialize()
    asked(root)
    lock = root / "run" / "recall.lock"
    assert lock.exists()
    servers[0].process.send_signal(signal.SIGKILL)
    servers[0].process.wait()
    asked(root)
    servers[1].process.send_signal(signal.SIGTERM)
    assert servers[1].process.wait(timeout=30) == 0
    assert not Path(socket_path(str(root))).exists()
