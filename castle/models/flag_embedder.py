"""Models of the bge-m3 family in FlagEmbedding, where that is installed; only their dense vectors are used.

They are those that sentence-transformers makes of the same files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_OWN_FILE = "colbert_linear.pt"
"""A part of these models that no others have."""
_BATCH = 32


def is_m3(path: Path) -> bool:
    """Say whether FlagEmbedding is installed and the model in a directory is of the family of bge-m3."""
    return (path / _OWN_FILE).is_file() and find_spec("FlagEmbedding") is not None


class FlagEngine:
    """A model in FlagEmbedding."""

    def __init__(self, path: Path, device: str) -> None:
        from FlagEmbedding import BGEM3FlagModel

        self._model: Any = BGEM3FlagModel(
            str(path),
            normalize_embeddings=True,
            use_fp16=False,
            devices=[device],
            return_sparse=False,
            return_colbert_vecs=False,
        )
        self.tokenizer = self._model.tokenizer
        config = self._model.model.model.config
        self.dim = int(config.hidden_size)
        self.max_tokens = _window(path) or min(
            int(self.tokenizer.model_max_length), int(config.max_position_embeddings)
        )
        self.prompts: Mapping[str, str] = {}

    def encode(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        """Return the unit vectors of texts that fit the window with the prompt, shape (len(texts), dim)."""
        import numpy as np

        whole = [prompt + text for text in texts]
        parts = [
            # One more than it is ever given: from a full batch on it draws progress bars.
            self._model.encode(
                whole[start : start + _BATCH], batch_size=_BATCH + 1, max_length=self.max_tokens
            )["dense_vecs"]
            for start in range(0, len(whole), _BATCH)
        ]
        vectors: NDArray[np.float32] = np.concatenate(parts).astype(np.float32, copy=False)
        return vectors


def _window(path: Path) -> int:
    """Return the window that the files of sentence-transformers name, 0 where they name none."""
    try:
        found = json.loads((path / "sentence_bert_config.json").read_text(encoding="utf-8"))
        return int(found.get("max_seq_length") or 0)
    except (OSError, ValueError, AttributeError, TypeError):
        return 0
