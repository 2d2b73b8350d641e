"""What every embedder is: an identity, two methods, and vectors that have been checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from castle.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NORM_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Which vectors an embedder makes: ``identity`` changes whenever the vectors would.

    ``name`` is what a user types, ``dim`` the length of a vector.
    """

    name: str
    dim: int
    identity: str


class Embedder(Protocol):
    """Turns text into unit vectors. ``max_tokens`` is the window, in the model's own tokens."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Say which vectors these are."""

    @property
    def max_tokens(self) -> int:
        """Return how many tokens one pass reads, special tokens included."""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dim), in the order of the texts."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,)."""


def checked(vectors: NDArray[np.float32], identity: EmbedderIdentity) -> NDArray[np.float32]:
    """Return the vectors as they are, or raise ModelError when they cannot be stored or compared.

    They must be float32 of shape (n, dim), finite, and of unit length within 0.001.
    """
    import numpy as np

    def refuse(what: str) -> ModelError:
        return ModelError(f"embedder {identity.name!r} ({identity.identity}) returned {what}")

    if vectors.ndim != 2 or vectors.shape[1] != identity.dim:
        raise refuse(f"vectors of shape {vectors.shape} instead of (n, {identity.dim})")
    if vectors.dtype != np.float32:
        raise refuse(f"{vectors.dtype} instead of float32")
    if not np.isfinite(vectors).all():
        raise refuse("a vector with NaN or infinity")
    norms = np.linalg.norm(vectors, axis=1)
    if not norms.all():
        raise refuse("a zero vector")
    if (np.abs(norms - 1) > _NORM_TOLERANCE).any():
        raise refuse("a vector whose length is not 1")
    return vectors


class CrossEncoder(Protocol):
    """Scores texts against a query.

    ``identity`` changes whenever scores would. A best score below ``confident`` says that nothing matches; it
    is 0 where that was not measured. ``blend`` is how much the fused score counts beside it, as
    ``castle.search.rerank`` explains. ``reason`` says why it is not the one that was asked for, if so.
    """

    @property
    def identity(self) -> str:
        """Say which scores these are."""

    @property
    def confident(self) -> float:
        """Return the least score of a match."""

    @property
    def blend(self) -> float:
        """Return how much the fused score counts, 0 for not at all."""

    @property
    def reason(self) -> str:
        """Return what went wrong while loading, in words for the user, or nothing."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a relevance in [0, 1] for each text, shape (len(texts),); raises ModelError."""


@runtime_checkable
class Comparer(Protocol):
    """A cross-encoder that also compares texts, or several read as one, among themselves."""

    def compare(self, query: str, groups: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return how well each group of texts answers a query beside the others, in log odds.

        Shape (len(groups),). Only differences matter.
        """


def checked_scores(scores: NDArray[np.float32], count: int, identity: str) -> NDArray[np.float32]:
    """Return the scores as they are, or raise ModelError unless they are ``count`` numbers in [0, 1]."""
    import numpy as np

    if scores.shape != (count,):
        raise ModelError(
            f"cross-encoder {identity} returned scores of shape {scores.shape} for {count} texts"
        )
    if not (np.isfinite(scores).all() and (scores >= 0).all() and (scores <= 1).all()):
        raise ModelError(f"cross-encoder {identity} returned a score outside [0, 1]")
    return scores
