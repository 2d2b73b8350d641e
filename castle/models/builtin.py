"""The built-in embedder: all-MiniLM-L6-v2 in 8-bit integers on ONNX Runtime, offline, without torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from castle.models.base import EmbedderIdentity, checked
from castle.models.build import GRAPH_VERSION, INPUT, MAX_TOKENS, OUTPUT, SOURCE_SHA256

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REVISION = f"{SOURCE_SHA256[:12]}-g{GRAPH_VERSION}"

IDENTITY = EmbedderIdentity(
    name="builtin",
    dim=384,
    identity=f"all-MiniLM-L6-v2/{_REVISION}/int8-dynamic/mean-{MAX_TOKENS}",
)

_MOST_THREADS = 8
_ERRORS_ONLY = 3


class BuiltinEmbedder:
    """Sentence vectors of 384 dimensions, near those of the float32 model in sentence-transformers.

    Their cosine to those is .998 on average, at least .99 for passages and .98 for single words.

    Every text is a run of its own, so that its vector is the same to the bit whatever it is embedded with;
    threads work on different texts. A text of more than 256 word pieces is read in windows of equal size, and
    its vector is their mean, weighted by size and normalised. Loading raises ModelError when the weights are
    missing or not the tested ones.
    """

    identity = IDENTITY
    max_tokens = MAX_TOKENS

    def __init__(self, threads: int | None = None) -> None:
        """``threads`` defaults to CASTLE_THREADS, or to the processors this process may use, at most 8."""
        self.threads = _thread_count() if threads is None else max(1, threads)
        self._session = _session()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), 384), in the order of the texts.

        A text without any word piece, such as the empty one, has the vector that the model gives to no words.
        KeyboardInterrupt passes through as soon as the texts being read are done, one per thread.
        """
        import numpy as np

        windows = [(number, ids) for number, text in enumerate(texts) for ids in _windows(text)]
        vectors = np.zeros((len(texts), IDENTITY.dim), dtype=np.float32)
        # Longest first, so that the threads end together.
        windows.sort(key=lambda window: -len(window[1]))
        pieces = self._run([ids for _, ids in windows])
        weights = (len(ids) - 2 for _, ids in windows)
        for (number, _), weight, vector in zip(windows, weights, pieces, strict=True):
            vectors[number] += max(weight, 1) * vector
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return checked(vectors, IDENTITY)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a query, shape (384,): queries and documents are embedded alike."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    def _run(self, inputs: list[list[int]]) -> list[NDArray[np.float32]]:
        """Run the model on each input."""
        if self.threads == 1 or len(inputs) < 2:
            return [self._run_one(ids) for ids in inputs]
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="castle-embed")
        try:
            return list(pool.map(self._run_one, inputs))
        finally:
            pool.shutdown(cancel_futures=True)

    def _run_one(self, ids: list[int]) -> NDArray[np.float32]:
        import numpy as np

        output: NDArray[np.float32] = self._session.run([OUTPUT], {INPUT: np.array(ids, dtype=np.int64)})[0]
        return output


def _windows(text: str) -> list[list[int]]:
    """Cut a text's word pieces into windows of nearly equal size, with [CLS] and [SEP] around each."""
    from castle.text.wordpiece import CLS, SEP, piece_ids

    ids = piece_ids(text)
    room = MAX_TOKENS - 2
    count = max(1, -(-len(ids) // room))
    bounds = [len(ids) * number // count for number in range(count + 1)]
    return [[CLS, *ids[start:end], SEP] for start, end in zip(bounds, bounds[1:], strict=False)]


def _thread_count() -> int:
    named = os.environ.get("CASTLE_THREADS", "")
    if named.isascii() and named.isdigit() and int(named) > 0:
        return int(named)
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(_MOST_THREADS, os.cpu_count() or 1)


def _session() -> Any:
    """Load the model into ONNX Runtime, building it first when this user has none."""
    import onnxruntime

    from castle.models.build import build_model, read_source
    from castle.models.cache import cached_model

    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph is written the way it runs fastest; fusions beyond the basic ones slow it down.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # A plan of the memory per length of text would be kept for each of 255 lengths.
    options.enable_mem_pattern = False
    model = cached_model(f"all-MiniLM-L6-v2-{_REVISION}", lambda: build_model(read_source()))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
