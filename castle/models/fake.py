"""An embedder without a model: words hashed to signed dimensions. For tests, and for users' own tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from castle.models.base import EmbedderIdentity, checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IDENTITY = EmbedderIdentity(name="fake", dim=64, identity="fake-hashing-64/1")

_WORD = re.compile(r"\w+")


class FakeEmbedder:
    """Texts that share words are near each other; equal texts have equal vectors on every machine."""

    identity = IDENTITY
    max_tokens = 256

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), 64)."""
        import numpy as np

        vectors = np.zeros((len(texts), IDENTITY.dim), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.casefold()):
                dimension, sign = _place(word)
                vector[dimension] += sign
            if not vector.any():  # no words, or words that cancel each other
                dimension, sign = _place(f" {text}")
                vector[dimension] = sign
            vector /= np.linalg.norm(vector)
        return checked(vectors, IDENTITY)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (64,)."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


def _place(word: str) -> tuple[int, float]:
    """Hash a word to a dimension and a sign."""
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return digest[0] % IDENTITY.dim, 1.0 if digest[1] & 1 else -1.0
