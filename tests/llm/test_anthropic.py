from __future__ import annotations

import pytest

from castle.llm.anthropic import VERSION, Anthropic
from castle.llm.base import JSON_ONLY, LlmError
from castle.llm.http import Server
from tests.llm.servers import Fake, Reply, said_by_anthropic, serving


def provider(fake: Fake) -> Anthropic:
    headers = {"x-api-key": "sk-ant-1", "anthropic-version": VERSION}
    return Anthropic(Server("Anthropic", fake.url, headers, ("sk-ant-1",)), "m", timeout=60)


def test_it_speaks_the_messages_format() -> None:
    with serving(Reply(said_by_anthropic("hi"))) as fake:
        assert provider(fake).available() is None
        assert provider(fake).generate("be brief", "hello", json=True) == "hi"
        provider(fake).generate("be brief", "hello")
    first, second = fake.requests
    assert fake.asked == ["/v1/messages"] * 2
    assert first.headers["x-api-key"] == "sk-ant-1"
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert first.body == {
        "model": "m",
        "max_tokens": 2048,
        "system": f"be brief\n\n{JSON_ONLY}",
        "messages": [{"role": "user", "content": "hello"}],
    }
    assert second.body["system"] == "be brief"


def test_the_texts_of_an_answer_are_joined() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": '{"a"'},
        "noise",
        {"type": "text", "text": ": 1}"},
    ]
    with serving(Reply({"content": blocks})) as fake:
        assert provider(fake).generate("s", "p") == '{"a": 1}'


@pytest.mark.parametrize(
    "body", [{}, {"content": "hi"}, {"content": []}, {"content": [{"type": "text", "text": 1}]}]
)
def test_an_answer_without_a_text_is_an_error(body: object) -> None:
    with serving(Reply(body)) as fake, pytest.raises(LlmError, match="without a text"):
        provider(fake).generate("s", "p")


def test_an_answer_that_was_cut_off_is_an_error() -> None:
    with serving(Reply({**said_by_anthropic("half"), "stop_reason": "max_tokens"})) as fake:
        with pytest.raises(LlmError, match="was cut off"):
            provider(fake).generate("s", "p")


def test_a_wrong_key_is_not_repeated() -> None:
    body = {
        "type": "error",
        "error": {"type": "authentication_error", "message": "invalid x-api-key sk-ant-1"},
    }
    with serving(Reply(body, 401)) as fake, pytest.raises(LlmError) as caught:
        provider(fake).generate("s", "p")
    assert "invalid x-api-key ***; set the key: castle config set llm_api_key -" in str(caught.value)
    assert "sk-ant-1" not in repr(provider(fake))
