"""Embedders by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from castle.errors import ModelError
from castle.models.base import Embedder, EmbedderIdentity
from castle.models.builtin import BuiltinEmbedder
from castle.models.fake import FakeEmbedder


@dataclass(frozen=True, slots=True)
class _Entry:
    identity: EmbedderIdentity
    load: Callable[[], Embedder]


_EMBEDDERS = {
    entry.identity.name: entry
    for entry in (
        _Entry(BuiltinEmbedder.identity, BuiltinEmbedder),
        _Entry(FakeEmbedder.identity, FakeEmbedder),
    )
}


def embedder_names() -> tuple[str, ...]:
    """Return the names that ``load_embedder`` knows, the default first."""
    return tuple(_EMBEDDERS)


def describe_embedder(name: str) -> EmbedderIdentity:
    """Return the identity of an embedder without loading it; an unknown name raises ModelError."""
    return _entry(name).identity


def load_embedder(name: str) -> Embedder:
    """Load an embedder, ready to embed; raises ModelError when it is unknown or its weights are unusable."""
    return _entry(name).load()


def _entry(name: str) -> _Entry:
    entry = _EMBEDDERS.get(name)
    if entry is None:
        near = get_close_matches(name.lower(), _EMBEDDERS, n=1, cutoff=0.0)
        raise ModelError(
            f"there is no embedder {name!r}; known: {', '.join(_EMBEDDERS)}; did you mean {near[0]!r}?"
        )
    return entry
