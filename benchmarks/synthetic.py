"""Texts, questions and vectors without end: a model of words for ``benchmarks.scale``, the same everywhere.

Words follow Zipf's law. A text speaks of one topic: half of its words are the topic's own, the others are
everybody's. The vector of a text is the weighted mean of its words' vectors, whose spectrum falls as that of
sentence models does, so that the texts of a topic lie in one neighbourhood, and topics overlap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from castle.models import late, registry
from castle.models.base import EmbedderIdentity, checked
from castle.models.builtin import BuiltinEmbedder

NAME = "synthetic"
DIM = 384
VOCABULARY = 30_000
COMMON = 300
TOPIC_WORDS = 60
MOST_TOPICS = 5000
SHORTEST, LONGEST = 50, 120
"""Words of a text."""
_SYLLABLES = [
    c + v for c in "bdfghklmnprstvz" for v in ("a", "e", "i", "o", "u", "an", "er", "il", "os", "un")
]


@cache
def vocabulary() -> list[str]:
    """Return the words, the most frequent first; frequent ones are short."""
    random = np.random.default_rng(1)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        syllables = 1 if len(words) < 100 else 2 if len(words) < 8000 else 3
        words.setdefault("".join(random.choice(_SYLLABLES, syllables)))
    return list(words)


@cache
def _places() -> dict[str, int]:
    return {word: place for place, word in enumerate(vocabulary())}


@cache
def _matrix() -> NDArray[np.float32]:
    """Return the vector of each word, common ones near zero."""
    spectrum = (np.arange(DIM) + 3.0) ** -0.45
    vectors = np.random.default_rng(2).standard_normal((VOCABULARY, DIM)) * spectrum
    vectors[:COMMON] *= 0.15
    matrix: NDArray[np.float32] = vectors.astype(np.float32)
    return matrix


@cache
def _topics() -> NDArray[np.int64]:
    """Return the words of each topic."""
    return np.random.default_rng(3).integers(COMMON, VOCABULARY, (MOST_TOPICS, TOPIC_WORDS))


def texts(source: int, count: int, topics: int) -> list[str]:
    """Return the texts of a source, each of one topic, about 500 characters long."""
    random = np.random.default_rng([4, source])
    words, shape = vocabulary(), (count, LONGEST)
    everybodys = np.minimum(random.zipf(1.3, shape), VOCABULARY) - 1
    own = _topics()[random.integers(0, topics, (count, 1)), random.integers(0, TOPIC_WORDS, shape)]
    places = np.where(random.random(shape) < 0.5, own, everybodys).tolist()
    lengths = random.integers(SHORTEST, LONGEST, count).tolist()
    return [
        " ".join([words[place] for place in row[:length]])
        for row, length in zip(places, lengths, strict=True)
    ]


def questions(count: int, topics: int) -> list[str]:
    """Return distinct questions of six words of one topic among four of everybody's."""
    random = np.random.default_rng(5)
    found: dict[str, None] = {}
    while len(found) < count:
        own = random.choice(_topics()[int(random.integers(0, topics))], 6, replace=False)
        places = random.permutation(np.concatenate([own, random.integers(0, COMMON, 4)]))
        found.setdefault(" ".join(vocabulary()[place] for place in places))
    return list(found)


class SyntheticEmbedder(BuiltinEmbedder):
    """Vectors by the model of words, while every question takes the time of the built-in model.

    So does the cross-encoder, which reads with that model.
    """

    identity = EmbedderIdentity(NAME, DIM, "synthetic-words/1")

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; one without a known word gets one of its own."""
        matrix, places = _matrix(), _places()
        known = [
            [place for word in text.split() if (place := places.get(word)) is not None] for text in texts
        ]
        vectors = np.stack(
            [matrix[row].sum(axis=0) if row else _own(text) for row, text in zip(known, texts, strict=True)]
        )
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return checked(vectors, self.identity)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, after the built-in model has read it."""
        super().embed_documents([text])
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


def _own(text: str) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)


def register() -> None:
    """Let palaces of this process name the synthetic embedder."""
    late.TUNINGS[NAME] = late.TUNINGS["builtin"]
    registry._EMBEDDERS[NAME] = registry._Entry(SyntheticEmbedder.identity, SyntheticEmbedder)
