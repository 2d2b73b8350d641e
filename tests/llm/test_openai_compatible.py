from __future__ import annotations

import pytest

from castle.llm.base import LlmError
from castle.llm.http import Server
from castle.llm.openai_compatible import OpenAICompatible, base_url
from castle.llm.waiting import PROBES
from tests.llm.servers import Fake, Reply, Request, said_by_openai, serving


def provider(fake: Fake) -> OpenAICompatible:
    server = Server("the LLM server", base_url(fake.url), {"authorization": "Bearer k"}, ("k",))
    return OpenAICompatible(server, "m", timeout=60)


def test_it_speaks_the_chat_format() -> None:
    with serving(Reply(said_by_openai("hi"))) as fake:
        assert provider(fake).generate("be brief", "hello", json=True) == "hi"
        provider(fake).generate("be brief", "hello")
    first, second = (request.body for request in fake.requests)
    assert fake.asked == ["/v1/chat/completions"] * 2
    assert fake.requests[0].headers["authorization"] == "Bearer k"
    assert first["model"] == "m"
    assert first["max_tokens"] == 2048
    assert first["response_format"] == {"type": "json_object"}
    assert "response_format" not in second
    assert [message["role"] for message in first["messages"]] == ["system", "user"]


def test_a_server_that_refuses_json_object_is_asked_without() -> None:
    def answer(request: Request) -> Reply:
        refused = {"error": "'response_format.type' must be 'json_schema' or 'text'"}
        return Reply(refused, 400) if "response_format" in request.body else Reply(said_by_openai("hi"))

    with serving(answer) as fake:
        assert provider(fake).generate("s", "p", json=True) == "hi"
    assert set(fake.requests[1].body) == {"model", "stream", "messages"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": {"0": {}}},
        {"choices": ["hi"]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": None, "refusal": "no"}}]},
    ],
)
def test_an_answer_without_a_message_is_an_error(body: object) -> None:
    with serving(Reply(body)) as fake, pytest.raises(LlmError, match="without a message"):
        provider(fake).generate("s", "p")


def test_an_answer_that_was_cut_off_is_an_error() -> None:
    body = {"choices": [{"message": {"content": "half"}, "finish_reason": "length"}]}
    with serving(Reply(body)) as fake, pytest.raises(LlmError, match="was cut off"):
        provider(fake).generate("s", "p")


def test_a_server_on_this_machine_is_looked_for_and_another_one_is_not() -> None:
    with serving(Reply({})) as fake:
        assert provider(fake).available() is None
    assert fake.requests == []
    with pytest.raises(LlmError):
        provider(fake).generate("s", "p")
    assert "cannot be asked" in (provider(fake).available() or "")
    PROBES.clear()
    assert "is not running" in (provider(fake).available() or "")
    assert OpenAICompatible(Server("x", "https://api.openai.com/v1"), "m").available() is None


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://h:1234", "http://h:1234/v1"),
        ("http://h:1234/v1", "http://h:1234/v1"),
        ("http://h:1234/v1/chat/completions", "http://h:1234/v1"),
        ("https://openrouter.ai/api", "https://openrouter.ai/api/v1"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai"),
        ("http://v1:1234", "http://v1:1234/v1"),
    ],
)
def test_where_the_interface_is(given: str, base: str) -> None:
    assert base_url(given) == base
