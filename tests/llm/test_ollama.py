from __future__ import annotations

import pytest

from castle.llm.base import LlmError
from castle.llm.http import Server
from castle.llm.ollama import Ollama
from castle.llm.waiting import PROBES
from tests.llm.servers import Fake, Reply, Request, ollama, said_by_ollama, serving


def provider(fake: Fake, model: str = "m") -> Ollama:
    return Ollama(Server("Ollama", fake.url), model, timeout=60)


def test_it_speaks_the_chat_format() -> None:
    with serving(ollama('{"a": 1}')) as fake:
        assert provider(fake).generate("be brief", "hello", json=True) == '{"a": 1}'
        provider(fake).generate("be brief", "hello")
    first, second = (request.body for request in fake.requests)
    assert fake.asked == ["/api/chat"] * 2
    assert first["model"] == "m"
    assert first["stream"] is False
    assert first["think"] is False
    assert first["format"] == "json"
    assert "format" not in second
    assert first["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]
    assert "num_ctx" not in first["options"]


def test_a_long_question_asks_for_room() -> None:
    with serving(ollama("")) as fake:
        provider(fake).generate("s", "語" * 6000)
        provider(fake).generate("s", "x" * 90_000)
    assert [request.body["options"]["num_ctx"] for request in fake.requests] == [8192, 32768]


@pytest.mark.parametrize(
    ("asked", "there"),
    [("qwen3.5", "qwen3.5:latest"), ("qwen3.5:latest", "qwen3.5:latest"), ("hf.co/A/B:Q4", "hf.co/a/b:q4")],
)
def test_a_model_that_is_there(asked: str, there: str) -> None:
    with serving(ollama("", "other:7b", there)) as fake:
        assert provider(fake, asked).available() is None
        assert provider(fake, asked).available() is None
    assert fake.asked == ["/api/tags"]


def test_a_model_that_is_missing_is_asked_for_once() -> None:
    with serving(ollama("", "qwen3.5:8b")) as fake:
        reason = provider(fake, "qwen3.5").available()
        assert reason == f"Ollama at {fake.url} does not have the model qwen3.5; get it: ollama pull qwen3.5"
        assert provider(fake, "qwen3.5").available() == reason
        assert provider(fake, "qwen3.5:8b").available() is None
    assert fake.asked == ["/api/tags"] * 2


def test_no_server_is_a_reason() -> None:
    with serving(ollama("")) as fake:
        pass
    reason = provider(fake).available() or ""
    assert "is not running" in reason
    assert reason.endswith("; start it: ollama serve")


def test_a_server_that_takes_the_connection_and_says_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("castle.llm.ollama.PROBE_S", 0.3)
    with serving(Reply({"models": ["x" * 1000]}, drip=True)) as fake:
        assert "did not answer within 0.3 s" in (provider(fake).available() or "")


@pytest.mark.parametrize("body", [{}, {"models": None}, {"models": ["m:latest", {"name": 3}]}, b"<html>"])
def test_a_strange_list_of_models_is_a_reason(body: object) -> None:
    with serving(Reply(body)) as fake:
        assert provider(fake).available() is not None


@pytest.mark.parametrize(
    "body", [{}, {"message": "hi"}, {"message": {}}, {"message": {"content": ["x"]}}, {"message": None}]
)
def test_an_answer_without_a_message_is_an_error(body: object) -> None:
    with serving(Reply(body)) as fake, pytest.raises(LlmError, match="without a message"):
        provider(fake).generate("s", "p")


def test_an_answer_that_was_cut_off_is_an_error() -> None:
    with serving(Reply({**said_by_ollama("half"), "done_reason": "length"})) as fake:
        with pytest.raises(LlmError, match="the answer of m was cut off"):
            provider(fake).generate("s", "p")


def test_a_version_that_refuses_think_is_asked_without() -> None:
    def answer(request: Request) -> Reply:
        refused = {"error": '"m" does not support thinking'}
        return Reply(refused, 400) if "think" in request.body else Reply(said_by_ollama("hi"))

    with serving(answer) as fake:
        assert provider(fake).generate("s", "p") == "hi"


def test_a_server_that_fails_is_looked_for_anew() -> None:
    with serving(ollama("")) as fake:
        assert provider(fake).available() is None
    with pytest.raises(LlmError):
        provider(fake).generate("s", "p")
    assert provider(fake).available() is not None
    PROBES.clear()
