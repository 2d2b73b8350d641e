"""Which model a review asks: the one that was named, and no other in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from castle.config.settings import Settings, find_key
from castle.errors import UsageError
from castle.sue.schema import Schema

if TYPE_CHECKING:
    from castle.llm.base import Provider

ProviderName = Literal["ollama", "codex", "openai-compat", "anthropic", "claude-cli"]
PROVIDERS: tuple[ProviderName, ...] = get_args(ProviderName)
DEFAULT_PROVIDER: ProviderName = "ollama"
_MORE_TIME = "more time: castle sue review --timeout SECONDS"


@dataclass(frozen=True, slots=True)
class Transport:
    """A provider that can be asked. ``place`` is where texts go; ``external`` when that is another machine.

    A command brings its own login, and its model runs elsewhere.
    """

    provider: Provider
    place: str
    external: bool

    def ask(self, system: str, prompt: str, schema: Schema) -> str:
        """Return what the model says; raises LlmError."""
        from castle.llm.base import MORE_TIME, UnansweredError, held_to

        try:
            return held_to(self.provider, schema).generate(system, prompt, json=True)
        except UnansweredError as error:  # the setting it names is not the one that a review goes by
            raise UnansweredError(str(error).replace(MORE_TIME, _MORE_TIME)) from None


def transport(settings: Settings, name: str, model: str | None, timeout: float) -> Transport:
    """Return the transport to a provider; asks nothing of anybody.

    Ollama is always the one on this machine: an address that leads elsewhere, in whatever variable or file,
    does not count here. Raises UsageError for a provider that there is not or that cannot be asked.
    """
    if name not in PROVIDERS:
        raise UsageError(f"provider {name!r} is none of {', '.join(PROVIDERS)}")
    if name == "codex":
        from castle.llm.codex_cli import MODEL, CodexCli

        return Transport(CodexCli(model or MODEL, timeout), "the command codex", external=True)
    from castle.llm.base import Unusable
    from castle.llm.claude_cli import ClaudeCli
    from castle.llm.registry import provider_of

    provider = provider_of(_settings(settings, name, model, timeout))
    if isinstance(provider, Unusable):
        raise UsageError(str(provider.available()))
    if isinstance(provider, ClaudeCli):
        return Transport(provider, "the command claude", external=True)
    server = provider.server  # type: ignore[attr-defined]  # all others have one
    return Transport(provider, server.address, external=not server.local)


def _settings(settings: Settings, name: str, model: str | None, timeout: float) -> Settings:
    """Return settings in which this provider is the one that is named."""
    from castle.llm.http import is_local

    same = settings.llm_provider == name
    # An address and a key belong to the provider that the settings name; openai-compat has no address but it.
    endpoint = settings.llm_endpoint if same or name == "openai-compat" else None
    if name == "ollama" and endpoint is not None and not is_local(endpoint):
        endpoint = None
    usual = settings.llm_model if same else str(find_key("llm_model").default)
    origins = {**settings.origins, "llm_provider": "flag"}
    return replace(
        settings,
        llm_provider=name,  # type: ignore[arg-type]  # it is one of them
        llm_model=model or usual,
        llm_endpoint=endpoint,
        llm_api_key=settings.llm_api_key if same else None,
        llm_timeout=timeout,
        origins=origins,
    )
