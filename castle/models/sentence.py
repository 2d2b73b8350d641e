"""Models in torch: any of sentence-transformers that is on this machine, by hub name or directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from castle.errors import ModelError
from castle.models.base import checked
from castle.models.encoder import thread_count
from castle.models.hub import KnownModel, describe, known, locate

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

BATCH = 32
USUAL_WINDOW = 512
MOST_WINDOW = 1_000_000
"""From here on a window is the way in which a tokenizer says that it does not know."""
# A slice of a text may have more tokens than the same characters had within it.
_SPARE = 4


class Engine(Protocol):
    """A model that is loaded: ``max_tokens`` is its window, ``prompts`` are those of its configuration."""

    tokenizer: Any
    dim: int
    max_tokens: int
    prompts: Mapping[str, str]

    def encode(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        """Return the unit vectors of texts that fit the window with the prompt, shape (len(texts), dim)."""


class SentenceEmbedder:
    """Vectors of a model in torch, normalised.

    The prompts for queries and documents are those that are known of the model, or else those of its own
    configuration. A text longer than the model's window is read in windows, and its vector is their mean,
    weighted by size and normalised.
    """

    def __init__(self, name: str, device: str = "auto") -> None:
        """Load the model; ``device`` is auto, cpu, mps, cuda or cuda:N.

        Raises ModelError when the model or the device is not on this machine or they do not fit.
        """
        if find_spec("sentence_transformers") is None:
            raise ModelError(
                f"the model {name} runs in torch, which is not installed; "
                "run: pip install 'cognitive-castle[bge]'"
            )
        self.identity = describe(name)
        self._known = known(name) or KnownModel(0, "")
        self._engine = _load(locate(name), torch_device(device))
        dim = self._engine.dim
        if dim != self.identity.dim:
            raise ModelError(f"the model {name} makes vectors of {dim}, expected were {self.identity.dim}")
        window = self._engine.max_tokens
        self.max_tokens: int = window if 0 < window < MOST_WINDOW else USUAL_WINDOW

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dim), in the order of the texts."""
        return self._embed(texts, self._known.document_prompt or self._prompt("document", "passage"))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (dim,)."""
        prompt = self._known.query_prompt or self._prompt("query")
        vector: NDArray[np.float32] = self._embed([text], prompt)[0]
        return vector

    def _prompt(self, *kinds: str) -> str:
        """Return the first of the model's own prompts of these kinds; a known model has none but those."""
        if self._known.query_prompt:
            return ""
        return next((found for kind in kinds if (found := self._engine.prompts.get(kind))), "")

    def _embed(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        import numpy as np

        room = max(1, self.max_tokens - len(self._engine.tokenizer(prompt)["input_ids"]) - _SPARE)
        windows = [
            (number, part, size)
            for number, text in enumerate(texts)
            for part, size in self._windows(text.encode("utf-8", "replace").decode("utf-8"), room)
        ]
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        if windows:
            pieces = self._engine.encode([part for _, part, _ in windows], prompt)
            for (number, _, size), vector in zip(windows, pieces, strict=True):
                vectors[number] += max(size, 1) * vector
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms > 0, norms, 1)
        return checked(vectors, self.identity)

    def _windows(self, text: str, room: int) -> Iterator[tuple[str, int]]:
        """Cut a text into parts of at most ``room`` tokens, with the number of tokens of each."""
        tokenizer = self._engine.tokenizer
        if not getattr(tokenizer, "is_fast", False):  # it cannot say where a token stands
            yield text, 1
            return
        encoded = tokenizer(
            text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
        )
        starts = [start for start, _ in encoded["offset_mapping"]]
        count = max(1, -(-len(starts) // room))
        bounds = [len(starts) * number // count for number in range(count + 1)]
        for first, last in zip(bounds, bounds[1:], strict=False):
            begin = starts[first] if first else 0
            end = starts[last] if last < len(starts) else len(text)
            yield text[begin:end], last - first


class _SentenceEngine:
    """A model in sentence-transformers."""

    def __init__(self, path: Path, device: str) -> None:
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(path), device=device, local_files_only=True)
        self.tokenizer = self._model.tokenizer
        self.dim = int(self._model.get_embedding_dimension() or 0)
        self.max_tokens = int(self._model.max_seq_length or 0)
        self.prompts: Mapping[str, str] = self._model.prompts or {}

    def encode(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        # An empty prompt, unlike none, keeps the model from adding its default.
        vectors: NDArray[np.float32] = self._model.encode(
            list(texts), prompt=prompt, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors


def _load(path: Path, device: str) -> Engine:
    """Load the model from its files alone, without a word on the terminal."""
    from safetensors import SafetensorError
    from transformers.utils import logging

    from castle.models.flag_embedder import FlagEngine, is_m3

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        return FlagEngine(path, device) if is_m3(path) else _SentenceEngine(path, device)
    except (OSError, ValueError, RuntimeError, LookupError, TypeError, ImportError, SafetensorError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"the model in {path} cannot be loaded: {reason}") from error


def torch_device(wanted: str) -> str:
    """Return a device that torch has here; raises ModelError when it has not the one that is wanted."""
    import torch

    kind, _, number = wanted.partition(":")
    available = {
        "cpu": 1,
        "mps": int(torch.backends.mps.is_available()),
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    }
    if wanted == "auto":
        kind = wanted = next(name for name in ("cuda", "mps", "cpu") if available[name])
    if int(number or 0) >= available.get(kind, 0):
        raise ModelError(
            f"torch has no device {wanted} on this machine; run: castle config set embedding_device auto"
        )
    if kind == "cpu":
        torch.set_num_threads(thread_count())
    return wanted
