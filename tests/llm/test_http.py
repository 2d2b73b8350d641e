from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from castle.llm.base import MAX_ANSWER_BYTES, LlmError
from castle.llm.http import Server, is_local, read_url
from tests.llm.servers import Fake, Reply, serving

KEY = "sk-very-secret-0123456789"


def server(fake: Fake) -> Server:
    return Server("Fake", fake.url, {"authorization": f"Bearer {KEY}"}, (KEY,))


def ask(reply: Reply, seconds: float = 60) -> dict[str, object]:
    with serving(reply) as fake:
        return server(fake).post("/ask", {"q": 1}, seconds)


@pytest.fixture
def refused() -> Iterator[str]:
    """The URL of a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_an_object_comes_back_and_the_header_goes_out() -> None:
    with serving(Reply({"a": "ü"})) as fake:
        assert server(fake).post("/ask", {"q": "half a pair: \ud83d"}, 60) == {"a": "ü"}
        assert server(fake).get("/look", 60) == {"a": "ü"}
    asked, looked = fake.requests
    assert (asked.method, asked.path, asked.body) == ("POST", "/ask", {"q": "half a pair: \ud83d"})
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (looked.method, looked.path, looked.body) == ("GET", "/look", None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b""), "did not answer with a JSON object: nothing"),
        (Reply(b"<html>"), "did not answer with a JSON object: <html>"),
        (Reply(b'{"a": '), "did not answer with a JSON object"),
        (Reply([1]), "did not answer with a JSON object"),
        (Reply(b"\xff\xfe\x00"), "did not answer with a JSON object"),
        (Reply(b"[" * 100_000), "did not answer with a JSON object"),
        (Reply({"a": 1}, declared=100), "cannot be asked"),
        (Reply(hang_up=True), "cannot be asked"),
        (Reply(b"x" * (MAX_ANSWER_BYTES + 1)), "answered more than 1,000,000 bytes"),
        (Reply({"error": "boom\nbang"}, 500), "answered 500: boom bang"),
        (Reply({"error": {"message": "no"}}, 404), "answered 404: no"),
        (Reply({"message": "slow down"}, 429), "answered 429: slow down"),
        (Reply(b"oh \x1b[31mdear", 502), r"answered 502: oh \[31mdear"),
        (Reply(b"", 503), "answered 503$"),
        (Reply({"error": {"message": f"bad key {KEY}"}}, 401), r"answered 401: bad key \*\*\*; set the key"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_bad_answer_is_one_line_that_says_who_and_what(reply: Reply, reason: str) -> None:
    with pytest.raises(LlmError, match=reason) as caught:
        ask(reply)
    message = str(caught.value)
    assert message.startswith("Fake at http://127.0.0.1:")
    assert len(message.splitlines()) == 1
    assert len(message) < 400
    assert KEY not in message


@pytest.mark.parametrize(
    "reply",
    [Reply({"text": "x" * 1000}, drip=True), Reply({}, headers={"x": "y" * 1000}, drip_headers=True)],
    ids=["body", "headers"],
)
def test_a_server_that_drips_does_not_outlast_the_deadline(reply: Reply) -> None:
    with serving(reply) as fake:
        with pytest.raises(LlmError, match=r"did not answer within 0.5 s; .*llm_timeout"):
            server(fake).post("/ask", {}, 0.5)
        # The connection is cut too: the thread that reads does not stay behind.
        for thread in threading.enumerate():
            if thread.name == "castle-llm":
                thread.join(60)
                assert not thread.is_alive()


def test_the_second_try_counts_against_the_same_deadline() -> None:
    with serving(lambda request: Reply({"error": "no"}, 400, drip="extra" not in request.body)) as fake:
        with pytest.raises(LlmError, match="did not answer within"):
            server(fake).post("/ask", {"text": "x" * 1000}, 1.0, optional={"extra": 1})


def test_optional_fields_are_left_out_when_they_are_refused() -> None:
    def answer(request: object) -> Reply:
        return Reply({"error": "unknown field"}, 400) if len(fake.requests) == 1 else Reply({"ok": 1})

    with serving(answer) as fake:
        assert server(fake).post("/ask", {"q": 1}, 60, optional={"extra": 2}) == {"ok": 1}
    assert [request.body for request in fake.requests] == [{"q": 1, "extra": 2}, {"q": 1}]

    with serving(Reply({"error": "bad"}, 400)) as fake:
        with pytest.raises(LlmError, match="answered 400: bad"):
            server(fake).post("/ask", {"q": 1}, 60)
    assert len(fake.requests) == 1


def test_a_redirect_is_not_followed() -> None:
    with serving(Reply({"stolen": 1})) as other:
        moved = Reply(b"", 307, {"location": f"{other.url}/ask"})
        with pytest.raises(LlmError, match="answered 307; redirects are not followed"):
            ask(moved)
    assert other.requests == []


def test_no_proxy_is_asked_on_this_machine(monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, refused)
    assert ask(Reply({"a": 1})) == {"a": 1}


def test_a_proxy_that_cannot_be_used_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(LlmError, match="cannot be asked"):
        Server("Fake", "http://example.invalid").post("/ask", {}, 60)


def test_nobody_there(refused: str) -> None:
    with pytest.raises(LlmError, match=r"cannot be asked: .*refused"):
        Server("Fake", refused).post("/ask", {}, 60)
    assert "is not running" in (Server("Fake", refused).listening() or "")


def test_no_secret_is_shown() -> None:
    one = Server("Fake", "https://me:pass-word@example.com/v1", {"x-api-key": KEY}, (KEY,))
    assert str(one) == "Fake at https://example.com"
    for text in (repr(one), str(one), one.shown(f"got {KEY} and pass-word")):
        assert KEY not in text
        assert "pass-word" not in text


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:11434", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:1234/v1", True),
        ("http://LOCALHOST:8080", True),
        ("https://api.localhost", True),
        ("http://127.0.0.1.example.com", False),
        ("http://localhost.example.com", False),
        ("http://localhost@example.com", False),
        ("http://192.168.1.5:11434", False),
        ("http://10.evil.example", False),
        ("https://api.openai.com", False),
    ],
)
def test_what_counts_as_this_machine(url: str, local: bool) -> None:
    assert is_local(url) is local


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host",
        "http://",
        "http://host:99999",
        "http://a b",
        "http://h/?x=1",
        "http://[::1",
    ],
)
def test_what_is_no_url_of_a_server(url: str) -> None:
    with pytest.raises(LlmError, match="llm_endpoint"):
        read_url(url)


def test_a_url_loses_its_last_slash() -> None:
    assert read_url(" http://host:1/v1/ ") == "http://host:1/v1"
