"""A second embedder that needs no model, for tests that exchange one for another."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castle.models import registry
from castle.models.base import EmbedderIdentity, checked

SECOND = EmbedderIdentity("second", 48, "second-hashing-48/1")


class SecondEmbedder:
    """Words hashed to 48 dimensions; ``before`` is called with the texts of each batch."""

    identity = SECOND
    max_tokens = 256

    def __init__(self, before: Callable[[Sequence[str]], None] | None = None) -> None:
        self._before = before

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._before is not None:
            self._before(texts)
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            vector[0] = 0.1
            for word in re.findall(r"\w+", text.casefold()):
                digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
                vector[digest[0] % 48] += 1.0 if digest[1] & 1 else -1.0
            vector /= np.linalg.norm(vector)
        return checked(vectors, self.identity)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


def install(before: Callable[[Sequence[str]], None] | None = None) -> None:
    """Make the embedder known in this process."""
    registry._EMBEDDERS["second"] = registry._Entry(SECOND, lambda: SecondEmbedder(before))
    registry._own.cache_clear()


def remove() -> None:
    """Forget it again."""
    registry._EMBEDDERS.pop("second", None)
    registry._own.cache_clear()


def slowly(log: Path, seconds: float) -> Callable[[Sequence[str]], None]:
    """Return what makes each batch take some time, and notes how many texts it had."""

    def before(texts: Sequence[str]) -> None:
        with log.open("a", encoding="ascii") as file:
            file.write(f"{len(texts)}\n")
        time.sleep(seconds)

    return before
