"""Cross-encoders by name: what says how well a text answers a query, having read both.

``builtin`` needs nothing but the embedder; ``fake`` counts words; ``off`` is none. A hub name or a directory
means a model in torch: those of the bge-reranker family go through FlagEmbedding, all others through
sentence-transformers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from castle.errors import ModelError
from castle.models import hub
from castle.models.base import CrossEncoder, Embedder
from castle.models.token_cache import TokenCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.models.builtin import BuiltinEmbedder

OFF = "off"
_NAMES = ("builtin", "fake", OFF)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FakeCrossEncoder:
    """The share of the query's distinct words that a text has. For tests, and for users' own tests."""

    identity: str = "fake-words/1"
    confident: float = 0.0
    blend: float = 0.0
    reason: str = ""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the share for each text, 0 for a query without words."""
        import numpy as np

        wanted = set(_WORD.findall(query.casefold()))
        found = [len(wanted.intersection(_WORD.findall(text.casefold()))) for text in texts]
        return np.array([count / max(len(wanted), 1) for count in found], dtype=np.float32)


def cross_encoder_names() -> tuple[str, ...]:
    """Return the names of Castle's own cross-encoders, the default first."""
    return _NAMES


def load_cross_encoder(
    name: str,
    *,
    device: str = "auto",
    cpu_name: str | None = None,
    embedder: Embedder | None = None,
    cache: TokenCache | None = None,
) -> CrossEncoder | None:
    """Load a cross-encoder, ready to score, or None for ``off``.

    ``device`` is the setting ``embedding_device`` and concerns models in torch; ``cpu_name`` is the model to
    take on a processor instead. ``builtin`` reads the token vectors of ``embedder`` if that gives them out,
    and otherwise loads the built-in embedder; ``cache`` keeps them. Raises ModelError when the name is
    unknown, or the model is not on this machine or does not fit.
    """
    if name == OFF:
        return None
    if name == "fake":
        return FakeCrossEncoder()
    if name == "builtin":
        return _late_interaction(embedder, cache)
    for each in (name, cpu_name):
        if each is not None and not hub.is_model(each):
            raise _unknown(each)
    from castle.models.sentence_reranker import load

    return load(name, device, cpu_name or name)


def _late_interaction(embedder: Embedder | None, cache: TokenCache | None) -> CrossEncoder:
    from castle.models.builtin import BuiltinEmbedder
    from castle.models.late import LateInteraction
    from castle.models.multilingual import MultilingualEmbedder

    if not isinstance(embedder, BuiltinEmbedder | MultilingualEmbedder):
        embedder = _builtin()
    return LateInteraction(embedder, cache)


@functools.cache
def _builtin() -> BuiltinEmbedder:
    """Load the built-in embedder, once for all palaces of a process that have another one."""
    from castle.models.builtin import BuiltinEmbedder

    return BuiltinEmbedder()


def _unknown(name: str) -> ModelError:
    near = get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.0)
    return ModelError(
        f"there is no cross-encoder {name!r}; known: {', '.join(_NAMES)}, a hub model as OWNER/NAME, "
        f"or the directory of one; did you mean {near[0]!r}?"
    )
