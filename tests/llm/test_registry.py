from __future__ import annotations

import socket
import typing

import pytest

from castle.config.settings import LlmProvider, Settings
from castle.llm.anthropic import Anthropic
from castle.llm.base import LlmError
from castle.llm.claude_cli import ClaudeCli
from castle.llm.ollama import Ollama
from castle.llm.openai_compatible import OpenAICompatible
from castle.llm.registry import UNASKED_S, provider_of
from tests.llm.servers import Reply, said_by_anthropic, said_by_openai, serving

KEY = "sk-ambient-123456"
NAMED = {"llm_provider": "user castle.yaml"}


@pytest.fixture
def ambient_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_the_default_is_ollama_on_this_machine(ambient_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    provider = provider_of(Settings())
    assert isinstance(provider, Ollama)
    assert (provider.name, provider.model, provider.timeout) == ("ollama", "qwen3.5:latest", UNASKED_S)
    assert provider.server.url == "http://127.0.0.1:11434"
    assert provider.server.headers == {}


@pytest.mark.parametrize("name", typing.get_args(LlmProvider))
def test_every_name_of_the_settings_is_known(name: LlmProvider, ambient_keys: None) -> None:
    provider = provider_of(Settings(llm_provider=name, llm_endpoint="http://localhost:1", llm_model="x"))
    assert (provider.name, provider.model) == (name, "x")
    classes = (Ollama, OpenAICompatible, Anthropic, ClaudeCli)
    assert isinstance(provider, classes[typing.get_args(LlmProvider).index(name)])
    assert KEY not in repr(provider)


def test_a_key_in_the_environment_serves_a_provider_that_is_named(ambient_keys: None) -> None:
    with serving(Reply(said_by_anthropic("hi"))) as fake:
        provider = provider_of(Settings(llm_provider="anthropic", llm_endpoint=fake.url))
        assert provider.generate("s", "p") == "hi"
        assert fake.requests[0].headers["x-api-key"] == KEY
    with serving(Reply(said_by_openai("hi"))) as fake:
        provider = provider_of(Settings(llm_provider="openai-compat", llm_endpoint=fake.url))
        assert provider.generate("s", "p") == "hi"
        assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_of_the_settings_goes_before_one_of_the_environment(ambient_keys: None) -> None:
    provider = provider_of(Settings(llm_provider="anthropic", llm_api_key=" mine\n"))
    assert isinstance(provider, Anthropic)
    assert provider.server.headers["x-api-key"] == "mine"


def test_a_key_of_the_environment_does_not_go_out_in_the_clear(ambient_keys: None) -> None:
    def headers(endpoint: str, key: str | None = None) -> object:
        provider = provider_of(Settings(llm_provider="openai-compat", llm_endpoint=endpoint, llm_api_key=key))
        assert isinstance(provider, OpenAICompatible)
        return provider.server.headers

    assert headers("https://example.com") == {"authorization": f"Bearer {KEY}"}
    assert headers("http://example.com") == {}
    assert headers("http://example.com", "mine") == {"authorization": "Bearer mine"}


def test_an_ollama_elsewhere_must_be_named() -> None:
    endpoint = "https://ollama.example.com"
    unnamed = provider_of(Settings(llm_endpoint=endpoint, llm_api_key="k"))
    assert "castle config set llm_provider ollama" in (unnamed.available() or "")
    named = provider_of(Settings(llm_endpoint=endpoint, llm_api_key="k", origins=NAMED))
    assert isinstance(named, Ollama)
    assert named.server.headers == {"authorization": "Bearer k"}
    here = provider_of(Settings(llm_endpoint="http://localhost:1", llm_api_key="k"))
    assert isinstance(here, Ollama)
    assert here.server.headers == {}


@pytest.mark.parametrize(
    ("settings", "help_"),
    [
        (Settings(llm_provider="anthropic"), "castle config set llm_api_key -"),
        (Settings(llm_provider="openai-compat"), "castle config set llm_endpoint http"),
        (
            Settings(llm_provider="openai-compat", llm_endpoint="lmstudio:1234"),
            "castle config set llm_endpoint",
        ),
        (Settings(llm_endpoint="http://localhost:port"), "castle config set llm_endpoint"),
        (Settings(llm_provider="anthropic", llm_api_key="two words"), "castle config set llm_api_key -"),
    ],
    ids=["no key", "no endpoint", "no url", "no port", "no such key"],
)
def test_what_is_missing_is_said_and_nothing_raised(settings: Settings, help_: str) -> None:
    provider = provider_of(settings)
    reason = provider.available() or ""
    assert help_ in reason
    assert "two words" not in reason
    assert (provider.name, provider.model) == (settings.llm_provider, provider.model)
    with pytest.raises(LlmError, match="castle config set"):
        provider.generate("s", "p")


def test_the_default_model_is_one_that_the_provider_has() -> None:
    assert provider_of(Settings(llm_provider="claude-cli")).model == "haiku"
    assert provider_of(Settings(llm_provider="anthropic", llm_api_key="k")).model.startswith("claude-")
    assert provider_of(Settings(llm_provider="claude-cli", llm_model="opus")).model == "opus"
