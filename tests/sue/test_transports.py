"""Each wire format, from the provider's name to an answer that a dialogue goes on with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from castle import config
from castle.errors import UsageError
from castle.llm.base import LlmError, UnansweredError
from castle.sue.dialogue import begin
from castle.sue.method import LENSES, Operator, Result, Terminal
from castle.sue.review import lead
from castle.sue.transports import PROVIDERS, transport
from tests.llm.commands import FakeClaude
from tests.llm.servers import (
    Reply,
    Request,
    said_by_anthropic,
    said_by_ollama,
    said_by_openai,
    serving,
)
from tests.sue.scripted import said

SILENT = json.dumps(said(Operator.DEFINE, Result.UNKNOWN))
FORMATS: dict[str, Callable[[str], dict[str, Any]]] = {
    "ollama": said_by_ollama,
    "openai-compat": said_by_openai,
    "anthropic": said_by_anthropic,
}


def asked(name: str, url: str | None, **more: Any) -> config.Settings:
    return replace(config.load({}), llm_provider=name, llm_endpoint=url, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FORMATS)
def test_a_dialogue_over_each_wire_format(name: str) -> None:
    wrap = FORMATS[name]
    answers = ["not JSON", SILENT]

    def answer(request: Request) -> Reply:
        return Reply(wrap(answers.pop(0)))

    with serving(answer) as server:
        found = transport(asked(name, server.url, llm_api_key="k" * 20), name, "m", 30)
        assert (found.external, found.place) == (False, server.url)
        dialogue = lead(
            begin(LENSES["meno"], 7), "What?", ["R1. Keep it."], found.ask, lambda call, after: None
        )
    assert dialogue.terminal is Terminal.APORIA_UNDEFINED
    bodies = [request.body for request in server.requests]
    assert len(bodies) == 2
    assert all("1|R1. Keep it." in json.dumps(body) for body in bodies)
    assert "Your last answer was not accepted" in json.dumps(bodies[1])
    if name == "ollama":
        assert bodies[0]["format"]["type"] == "object"
        assert "anyOf" in bodies[1]["format"]
    if name == "openai-compat":
        assert bodies[0]["response_format"]["json_schema"]["schema"]["type"] == "object"


def test_the_commands_are_asked_through_their_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = FakeClaude(tmp_path / "bin", monkeypatch)
    claude.says(SILENT)
    found = transport(config.load({}), "claude-cli", None, 30)
    assert (found.provider.model, found.external) == ("haiku", True)
    assert found.ask("be brief", "private words", {}) == SILENT
    assert claude.noted["stdin"] == "private words"
    assert transport(config.load({}), "codex", None, 30).provider.model == "gpt-5.6-luna"


def test_ollama_is_on_this_machine_whatever_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://ollama.example.com")
    for endpoint in (None, "http://ollama.example.com:11434"):
        found = transport(asked("ollama", endpoint), "ollama", None, 30)
        assert (found.place, found.external) == ("http://127.0.0.1:11434", False)
        assert found.provider.model == "qwen3.5:latest"
    # An address that was set for another provider is none for Ollama.
    other = transport(asked("openai-compat", "http://127.0.0.1:1234/v1"), "ollama", None, 30)
    assert other.place == "http://127.0.0.1:11434"


def test_only_who_is_named_is_asked_and_with_what_belongs_to_them() -> None:
    settings = asked("openai-compat", "https://llm.example.com", llm_model="big", llm_api_key="k" * 20)
    found = transport(settings, "openai-compat", None, 30)
    assert (found.place, found.external, found.provider.model) == ("https://llm.example.com", True, "big")
    with pytest.raises(UsageError, match="anthropic needs a key"):
        transport(settings, "anthropic", None, 30)
    with pytest.raises(UsageError, match="openai-compat needs the URL"):
        transport(asked("ollama", None), "openai-compat", None, 30)
    with pytest.raises(UsageError, match="none of ollama, codex"):
        transport(settings, "llama", None, 30)
    assert PROVIDERS == ("ollama", "codex", "openai-compat", "anthropic", "claude-cli")


def test_there_is_no_fallback() -> None:
    with serving(Reply(status=500)) as server:
        found = transport(asked("ollama", server.url), "ollama", "m", 5)
        with pytest.raises(LlmError):
            found.ask("s", "p", {})
        assert {request.path for request in server.requests} == {"/api/chat"}
    with pytest.raises(UnansweredError):
        transport(asked("ollama", server.url), "ollama", "m", 5).ask("s", "p", {})


def test_too_slow_an_answer_names_the_option_that_a_review_goes_by() -> None:
    with serving(Reply({"text": "x" * 1000}, drip=True)) as server:
        found = transport(asked("openai-compat", server.url), "openai-compat", "m", 0.2)
        with pytest.raises(UnansweredError, match=r"within 0.2 s; more time: castle sue review --timeout"):
            found.ask("s", "p", {})
