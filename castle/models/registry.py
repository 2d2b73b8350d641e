"""Embedders by name: Castle's own, models of sentence-transformers, and models behind a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from castle.errors import ModelError
from castle.models import hub
from castle.models.base import Embedder, EmbedderIdentity
from castle.models.builtin import BuiltinEmbedder
from castle.models.fake import FakeEmbedder
from castle.models.multilingual import MultilingualEmbedder
from castle.models.remote import NOWHERE, PROVIDERS, Endpoint, RemoteEmbedder, is_remote


@dataclass(frozen=True, slots=True)
class _Entry:
    identity: EmbedderIdentity
    load: Callable[[], Embedder]


_EMBEDDERS = {
    entry.identity.name: entry
    for entry in (
        _Entry(BuiltinEmbedder.identity, BuiltinEmbedder),
        _Entry(MultilingualEmbedder.identity, MultilingualEmbedder),
        _Entry(FakeEmbedder.identity, FakeEmbedder),
    )
}


def embedder_names() -> tuple[str, ...]:
    """Return the names of Castle's own embedders, the default first."""
    return tuple(_EMBEDDERS)


def describe_embedder(name: str, endpoint: Endpoint = NOWHERE) -> EmbedderIdentity:
    """Return the identity of an embedder without loading it; an unknown name raises ModelError.

    The identity of a model that is not known by its name comes from its files; without them ModelError says
    how to get them. That of a model behind a server comes from the server, which is asked.
    """
    entry = _EMBEDDERS.get(name)
    if entry is not None:
        return entry.identity
    if is_remote(name):
        return _remote(name, endpoint).identity
    if hub.is_model(name):
        return hub.describe(name)
    raise _unknown(name)


def load_embedder(name: str, device: str = "auto", endpoint: Endpoint = NOWHERE) -> Embedder:
    """Load an embedder, ready to embed; raises ModelError when it is unknown or its weights are unusable.

    Castle's own, and those behind a server, are loaded once in a process and shared by its palaces: they
    keep no state.

    ``device`` is the setting ``embedding_device``: auto, cpu, mps, cuda or cuda:N. It concerns embedders that
    run in torch. ``endpoint`` is the server of those that run elsewhere.
    """
    if name in _EMBEDDERS:
        return _own(name)
    if is_remote(name):
        return _remote(name, endpoint)
    if hub.is_model(name):
        from castle.models.sentence import SentenceEmbedder

        return SentenceEmbedder(name, device)
    raise _unknown(name)


@cache
def _own(name: str) -> Embedder:
    return _EMBEDDERS[name].load()


@cache
def _remote(name: str, endpoint: Endpoint) -> Embedder:
    return RemoteEmbedder(name, endpoint)


def _unknown(name: str) -> ModelError:
    near = get_close_matches(name.lower(), [*_EMBEDDERS, *hub.short_names()], n=1, cutoff=0.0)
    served = ", ".join(f"{provider}/MODEL" for provider in PROVIDERS)
    return ModelError(
        f"there is no embedder {name!r}; known: {', '.join(_EMBEDDERS)}, {served}, a hub model as "
        f"OWNER/NAME, or the directory of one; did you mean {near[0]!r}?"
    )
