"""The multilingual embedder: multilingual-e5-small in integers on ONNX Runtime, offline, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from castle.models.base import EmbedderIdentity
from castle.models.e5 import BEGIN, END, GRAPH_VERSION, MAX_TOKENS, SOURCE_SHA256
from castle.models.encoder import OnnxEmbedder, TokenVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REVISION = f"{SOURCE_SHA256[:12]}-g{GRAPH_VERSION}"

IDENTITY = EmbedderIdentity(
    name="multilingual",
    dim=384,
    identity=f"multilingual-e5-small/{_REVISION}/int8-dynamic/mean-{MAX_TOKENS}",
)


class MultilingualEmbedder(OnnxEmbedder):
    """Sentence vectors of 384 dimensions for about a hundred languages.

    The model was trained with a word in front that tells questions from answers, ``query:`` or ``passage:``;
    every window has it. A window is 512 pieces, these included. Loading raises ModelError when the weights
    are missing or not the tested ones.
    """

    identity = IDENTITY
    max_tokens = MAX_TOKENS
    rows_name = "LayerNormalization_376_0"

    def __init__(self, threads: int | None = None) -> None:
        """``threads`` defaults to CASTLE_THREADS, or to the processors this process may use, at most 8."""
        from castle.models.cache import cached_model
        from castle.models.e5 import build_model, read_source, read_tokenizer

        self._tokenizer = read_tokenizer()
        model = cached_model(f"multilingual-e5-small-{_REVISION}", lambda: build_model(read_source()))
        super().__init__(model, threads)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text as a passage, shape (len(texts), 384), in their order."""
        return self._embed(texts, [BEGIN, *self._tokens("passage:")], [END])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (384,)."""
        vector: NDArray[np.float32] = self._embed([text], [BEGIN, *self._tokens("query:")], [END])[0]
        return vector

    def embed_tokens(self, texts: Sequence[str], *, query: bool = False) -> list[TokenVectors]:
        """Return the vectors of the tokens of each text, of which a passage or a query is the mean."""
        return self._embed_tokens(texts, [BEGIN, *self._tokens("query:" if query else "passage:")], [END])

    def _tokens(self, text: str) -> list[int]:
        return self._tokenizer.ids(text)
