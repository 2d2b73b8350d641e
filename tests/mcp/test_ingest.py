"""``/ingest``: who may tell something, and what is answered, without a server around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from castle import Castle
from castle.mcp.access import Access, Message
from castle.mcp.ingest import MOST_BODY, PATH, Ingest
from castle.mcp.running import Running, jobs

TOKEN = "correct-horse-battery-staple"
OURS = [(b"host", b"localhost:1"), (b"authorization", b"Bearer " + TOKEN.encode())]
ASKED = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Why two replicas?"}


async def nothing(scope: Message, receive: object, send: Any) -> None:
    raise AssertionError("this is not for the protocol")


class Caller:
    """Sends requests to the checks of one server."""

    def __init__(self, palace: Path, token: str | None = TOKEN) -> None:
        self.running = Running(str(palace))
        self._access = Access(nothing, path="/mcp", more={PATH: Ingest(self.running.ingest)}, token=token)

    def __call__(
        self, body: object, headers: list[tuple[bytes, bytes]] = OURS, **more: object
    ) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        scope: Message = {"type": "http", "method": "POST", "path": PATH, "headers": headers}
        scope.update({"client": ("127.0.0.1", 5), **more})
        sent: list[Message] = []
        pieces = [data[:7], data[7:]]

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            if not pieces:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        anyio.run(self._access, scope, receive, send)
        return int(sent[0]["status"]), json.loads(sent[1]["body"])


@pytest.fixture
def palace(tmp_path: Path) -> Path:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.memory_save("the harbour is open")
    return tmp_path / "palace"


def test_an_event_is_accepted_once(palace: Path) -> None:
    call = Caller(palace)
    status, told = call(ASKED)
    assert status == 202
    assert (told["accepted"], told["new"], told["queued"]) == (True, True, 1)
    again = call(ASKED)
    assert again[0] == 202
    assert (again[1]["event_id"], again[1]["new"], again[1]["queued"]) == (told["event_id"], False, 1)
    with Castle(palace) as castle:
        found = castle.memory_recall("replicas", {"memory_type": "episodic"}).memories
        assert [(m.state, m.content) for m in found][:1] == [("pending", "Why two replicas?")]


def test_nobody_tells_anything_without_the_token(palace: Path) -> None:
    call = Caller(palace)
    host = [(b"host", b"localhost:1")]
    for headers in (host, [*host, (b"authorization", b"Bearer wrong")]):
        assert call(ASKED, headers)[0] == 401
    assert call(ASKED, [*OURS, (b"origin", b"http://evil.example")])[0] == 403
    assert call(ASKED, [(b"host", b"evil.example"), OURS[1]])[0] == 421
    without = Caller(palace, token=None)
    status, told = without(ASKED, host)
    assert status == 401 and "castle config set serve_token -" in told["error"]
    with Castle(palace) as castle:
        assert castle.memory_status()["ingest"] == {}


def test_what_is_no_event_is_one_line(palace: Path) -> None:
    call = Caller(palace)
    bodies: list[object] = [b"{", b"", b"\xff", {"type": "dance"}, []]
    for body in bodies:
        status, told = call(body)
        assert status == 400 and list(told) == ["error"]
    assert call({"content": "x" * MOST_BODY})[0] == 413
    assert call(ASKED, method="GET")[0] == 405


def test_no_palace_is_made(tmp_path: Path) -> None:
    status, told = Caller(tmp_path / "none")(ASKED)
    assert status == 503 and "castle init" in told["error"]
    assert not (tmp_path / "none").exists()


def test_only_somebody_here_names_a_transcript(palace: Path, tmp_path: Path) -> None:
    call = Caller(palace)
    stop = {"hook_event_name": "Stop", "session_id": "s1", "transcript_path": str(tmp_path / "s1.jsonl")}
    events = palace / "spool" / "events.jsonl"
    assert call(stop, client=("192.0.2.7", 5))[0] == 202
    assert not events.exists()
    assert call({**stop, "event_id": "here"})[0] == 202
    (line,) = map(json.loads, events.read_text(encoding="utf-8").splitlines())
    assert (line["hook"], line["session"]) == ("stop", "s1")


def test_what_a_server_does_by_itself_loads_no_model(palace: Path) -> None:
    call = Caller(palace)
    call({"content": "Buoys are painted in May"})
    running = call.running
    work = {job.name: job.work for job in jobs(running._beside.done, running._opened)}
    assert dict(work["ingest"]() or {})["filed"] == 1
    assert work["embed"]() is None and work["consolidate"]() is None and work["capture"]() is None
    with Castle(palace) as castle:
        assert castle.search("buoys").hits[0].text == "Buoys are painted in May"
