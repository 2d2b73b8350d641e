"""Embedders by name: Castle's own, and models of sentence-transformers by hub name or directory."""

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


def describe_embedder(name: str) -> EmbedderIdentity:
    """Return the identity of an embedder without loading it; an unknown name raises ModelError.

    The identity of a model that is not known by its name comes from its files; without them ModelError says
    how to get them.
    """
    entry = _EMBEDDERS.get(name)
    if entry is not None:
        return entry.identity
    if hub.is_model(name):
        return hub.describe(name)
    raise _unknown(name)


def load_embedder(name: str, device: str = "auto") -> Embedder:
    """Load an embedder, ready to embed; raises ModelError when it is unknown or its weights are unusable.

    Castle's own are loaded once in a process and shared by its palaces: they keep no state.

    ``device`` is the setting ``embedding_device``: auto, cpu, mps, cuda or cuda:N. It concerns embedders that
    run in torch.
    """
    if name in _EMBEDDERS:
        return _own(name)
    if hub.is_model(name):
        from castle.models.sentence import SentenceEmbedder

        return SentenceEmbedder(name, device)
    raise _unknown(name)


@cache
def _own(name: str) -> Embedder:
    return _EMBEDDERS[name].load()


def _unknown(name: str) -> ModelError:
    near = get_close_matches(name.lower(), [*_EMBEDDERS, *hub.short_names()], n=1, cutoff=0.0)
    return ModelError(
        f"there is no embedder {name!r}; known: {', '.join(_EMBEDDERS)}, a hub model as OWNER/NAME, "
        f"or the directory of one; did you mean {near[0]!r}?"
    )
