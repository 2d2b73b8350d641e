"""Cross-encoders in torch: those of sentence-transformers, and the loading that FlagEmbedding's share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.errors import ModelError
from castle.models.base import CrossEncoder, checked_scores
from castle.models.flag_reranker import BATCH, flag_scorer, is_bge
from castle.models.hub import locate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Scorer = Callable[[list[tuple[str, str]]], Sequence[float]]
"""Scores pairs of query and text, at least one and at most BATCH, in [0, 1]."""


class TorchCrossEncoder:
    """A cross-encoder in torch, on the device it was loaded to; its scores went through a sigmoid."""

    confident = 0.0
    blend = 0.0

    def __init__(self, identity: str, scorer: Scorer, reason: str = "") -> None:
        self.identity = identity
        self.reason = reason
        self._scorer = scorer

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a relevance in [0, 1] for each text; raises ModelError when the model cannot."""
        import numpy as np

        pairs = [(_legal(query), _legal(text)) for text in texts]
        scores: list[float] = []
        try:
            for start in range(0, len(pairs), BATCH):
                scores += self._scorer(pairs[start : start + BATCH])
        except (RuntimeError, ValueError, LookupError, TypeError) as error:
            raise ModelError(f"cross-encoder {self.identity} failed: {_first_line(error)}") from error
        return checked_scores(np.array(scores, dtype=np.float32), len(texts), self.identity)


def load(name: str, device: str, cpu_name: str) -> CrossEncoder:
    """Load a model of torch by hub name or directory, ``cpu_name`` where ``device`` means a processor.

    When a graphics card has too little memory, ``cpu_name`` is loaded to the processor and the reason noted.
    Raises ModelError when the model, the library or the device is not on this machine or they do not fit.
    """
    for each in (name, cpu_name):
        library = "FlagEmbedding" if is_bge(each) else "sentence_transformers"
        if find_spec(library) is None:
            raise ModelError(
                f"the model {each} runs in torch with {library}, which is not installed; "
                "run: pip install 'cognitive-castle[bge]'"
            )
    import torch

    from castle.models.sentence import torch_device

    place = torch_device(device)
    if place == "cpu":
        return _load(cpu_name, place)
    try:
        return _load(name, place)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
    reason = f"{place} has too little memory for {name}; {cpu_name} runs on the processor"
    return _load(cpu_name, torch_device("cpu"), reason)


def _load(name: str, device: str, reason: str = "") -> CrossEncoder:
    """Load one model from its files alone, without a word on the terminal."""
    import torch
    from safetensors import SafetensorError
    from transformers.utils import logging

    path = locate(name)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        if is_bge(name):
            scorer = flag_scorer(path, device)
        else:
            scorer = _sentence_scorer(path, device)
    except torch.OutOfMemoryError:
        raise
    except (OSError, ValueError, RuntimeError, LookupError, TypeError, ImportError, SafetensorError) as error:
        raise ModelError(f"the cross-encoder in {path} cannot be loaded: {_first_line(error)}") from error
    return TorchCrossEncoder(_identity(name, path), scorer, reason)


def _sentence_scorer(path: Path, device: str) -> Scorer:
    from sentence_transformers import CrossEncoder as Model
    from torch.nn import Sigmoid

    model: Any = Model(str(path), device=device, local_files_only=True)
    if model.num_labels != 1:
        raise ValueError(f"it tells {model.num_labels} classes apart instead of giving a score")

    def scorer(pairs: list[tuple[str, str]]) -> Sequence[float]:
        found: list[float] = model.predict(
            pairs, batch_size=BATCH, activation_fn=Sigmoid(), show_progress_bar=False
        ).tolist()
        return found

    return scorer


def _identity(name: str, path: Path) -> str:
    """Name the model, a hub model with its revision."""
    return f"{name}/{path.name}" if path.parent.name == "snapshots" else str(path)


def _legal(text: str) -> str:
    """Replace lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
