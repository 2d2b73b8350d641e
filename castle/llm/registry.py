"""Which language model is in force."""

from __future__ import annotations

import os
from collections.abc import Mapping

from castle.config.settings import Settings, find_key
from castle.llm.anthropic import MODEL as ANTHROPIC_MODEL
from castle.llm.anthropic import URL as ANTHROPIC_URL
from castle.llm.anthropic import VERSION, Anthropic
from castle.llm.base import LlmError, Provider, Unusable
from castle.llm.claude_cli import MODEL as CLI_MODEL
from castle.llm.claude_cli import ClaudeCli
from castle.llm.guard import read_allowed
from castle.llm.http import Server, is_local, read_url
from castle.llm.ollama import URL as OLLAMA_URL
from castle.llm.ollama import Ollama
from castle.llm.openai_compatible import OpenAICompatible, base_url

UNASKED_S = 15.0
"""The longest wait for an answer of a model that nobody named: it happens to run on this machine."""

_OWN_MODELS = {"anthropic": ANTHROPIC_MODEL, "claude-cli": CLI_MODEL}
_KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai-compat": "OPENAI_API_KEY"}


def provider_of(settings: Settings) -> Provider:
    """Return the provider that the settings name; it is built without asking anything of anybody.

    A provider that cannot be built says why in ``available()``. A key from the environment only serves a
    provider that is named, and goes out encrypted or not beyond this machine.
    """
    name, model = settings.llm_provider, settings.llm_model
    if name in _OWN_MODELS and model == find_key("llm_model").default:
        model = _OWN_MODELS[name]
    try:
        return _build(settings, model)
    except LlmError as error:
        return Unusable(name, model, str(error))


def _build(settings: Settings, model: str) -> Provider:
    name, timeout = settings.llm_provider, settings.llm_timeout
    if settings.origin("llm_provider") == "default":
        timeout = min(timeout, UNASKED_S)
    if name == "claude-cli":
        return ClaudeCli(model, timeout)
    url = _url(settings)
    key = _key(settings, url)
    allowed = settings.llm_allowed_hosts
    read_allowed(allowed)
    if name == "anthropic":
        if not key:
            raise LlmError("anthropic needs a key: castle config set llm_api_key -, or ANTHROPIC_API_KEY")
        headers = {"x-api-key": key, "anthropic-version": VERSION}
        return Anthropic(
            Server("Anthropic", url.removesuffix("/v1"), headers, (key,), allowed=allowed), model, timeout
        )
    if name == "openai-compat":
        return OpenAICompatible(
            Server("the LLM server", base_url(url), *_bearer(key), allowed=allowed), model, timeout
        )
    return Ollama(
        Server("Ollama", url, *_bearer("" if is_local(url) else key), allowed=allowed), model, timeout
    )


def _url(settings: Settings) -> str:
    name, endpoint = settings.llm_provider, settings.llm_endpoint
    if name == "openai-compat" and not endpoint:
        raise LlmError(
            "openai-compat needs the URL of its server, such as "
            "castle config set llm_endpoint http://localhost:1234/v1"
        )
    url = read_url(endpoint or (ANTHROPIC_URL if name == "anthropic" else OLLAMA_URL))
    if name == "ollama" and settings.origin("llm_provider") == "default" and not is_local(url):
        raise LlmError(
            "llm_endpoint is not on this machine and no provider is named: "
            "castle config set llm_provider ollama"
        )
    return url


def _key(settings: Settings, url: str) -> str:
    key = settings.llm_api_key or ""
    if not key and (url.startswith("https:") or is_local(url)):
        key = os.environ.get(_KEY_VARIABLES.get(settings.llm_provider, ""), "")
    key = key.strip()
    if not key.isascii() or any(c.isspace() or not c.isprintable() for c in key):
        raise LlmError("the API key holds characters that no key has: castle config set llm_api_key -")
    return key


def _bearer(key: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    return ({"authorization": f"Bearer {key}"}, (key,)) if key else ({}, ())
