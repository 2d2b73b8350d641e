"""The language model of the mind: asked where it can be, and told where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castle.errors import UsageError
from castle.llm.budget import Purpose, for_purpose

if TYPE_CHECKING:
    from castle.config import Settings
    from castle.llm.base import Provider
    from castle.store.palace import Palace

_BACKENDS = {"openai": "openai-compat", "claude": "anthropic"}
_OPENAI = "https://api.openai.com/v1"


def usable(
    llm: Provider | None, palace: Palace, purpose: Purpose, without: str
) -> tuple[Provider | None, list[str]]:
    """Return a model with the budget of a purpose, and nothing to note; or None and why, in one line.

    ``without`` says what is done when there is none.
    """
    if llm is None:
        return None, [f"no language model is configured: {without}"]
    provider = for_purpose(llm, palace.ledger, purpose)
    reason = provider.available()
    return (None, [f"{reason}: {without}"]) if reason else (provider, [])


def named_provider(settings: Settings) -> Provider | None:
    """Return the language model that somebody asked for, None where none was named."""
    from castle.llm.registry import provider_of

    if settings.origin("llm_provider") == "default":
        return None
    return provider_of(settings)


def llm_settings(backend: str, key: str | None, model: str | None, url: str | None) -> dict[str, str | None]:
    """Return the settings that name a language model, none where nobody asked for one."""
    if key is None and url is None:
        return {}
    if backend not in _BACKENDS:
        raise UsageError(f"llm_backend {backend!r} is none of {', '.join(_BACKENDS)}")
    endpoint = url or (_OPENAI if backend == "openai" else None)
    named = {"llm_provider": _BACKENDS[backend], "llm_api_key": key, "llm_endpoint": endpoint}
    return {**named, "llm_model": model or ("gpt-4o-mini" if backend == "openai" else None)}
