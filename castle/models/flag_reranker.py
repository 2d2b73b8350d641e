"""Cross-encoders of the bge-reranker family in FlagEmbedding."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BATCH = 32
_BGE = re.compile(r"bge-reranker(?!.*(gemma|minicpm|layerwise))", re.IGNORECASE)


def flag_scorer(path: Path, device: str) -> Callable[[list[tuple[str, str]]], Sequence[float]]:
    """Load a model to a device and return what scores up to BATCH pairs in [0, 1]; raises what torch does."""
    from FlagEmbedding import FlagReranker

    model: Any = FlagReranker(
        str(path),
        devices=[device],
        use_fp16=device.startswith("cuda"),
        # One more than it is ever given: from a full batch on it draws progress bars.
        batch_size=BATCH + 1,
        normalize=True,
    )
    labels = model.model.config.num_labels
    if labels != 1:
        raise ValueError(f"it tells {labels} classes apart instead of giving a score")
    # Otherwise it moves at its first use, and would run out of memory only then.
    model.model.to(device)

    def scorer(pairs: list[tuple[str, str]]) -> Sequence[float]:
        scores: Sequence[float] = model.compute_score(pairs)
        return scores

    return scorer


def is_bge(name: str) -> bool:
    """Say whether FlagEmbedding's cross-encoder for encoder-only models reads this model."""
    return _BGE.search(name.rstrip("/\\")) is not None
