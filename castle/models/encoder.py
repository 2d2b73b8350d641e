"""Runs a graph of ``castle.models.graph`` on ONNX Runtime: one text per run, threads on different texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from castle.models.base import EmbedderIdentity, checked
from castle.models.graph import INPUT, OUTPUT, with_output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Run = Callable[[list[int]], "NDArray[np.float32]"]
Window = tuple[int, list[int]]
"""The number of a text, and tokens of it that are read together."""

_MOST_THREADS = 8
_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """What a model makes of each token of a text: ``ids`` (tokens,), float32 unit ``rows`` (tokens, dim)."""

    ids: NDArray[np.int64]
    rows: NDArray[np.float32]


class OnnxEmbedder:
    """What the embedders on ONNX Runtime have in common.

    Every text is a run of its own, so that its vector is the same to the bit whatever it is embedded with;
    threads work on different texts. A text of more than ``max_tokens`` is read in windows of equal size, and
    its vector is their mean, weighted by size and normalised. A text without any token, such as the empty
    one, has the vector that the model gives to no words.
    """

    identity: EmbedderIdentity
    max_tokens: int
    rows_name: str
    """What the graph calls the rows of the tokens, of which the vector is the mean."""

    def __init__(self, model: bytes, threads: int | None = None) -> None:
        """``threads`` defaults to CASTLE_THREADS, or to the processors this process may use, at most 8."""
        self.threads = thread_count() if threads is None else max(1, threads)
        self._session = _session(with_output(model, self.rows_name))

    def _tokens(self, text: str) -> list[int]:
        """Return the tokens of a text without those that begin and end it."""
        raise NotImplementedError

    def _embed(
        self, texts: Sequence[str], before: Sequence[int], after: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return one unit vector per text, each window of it between the tokens ``before`` and ``after``.

        KeyboardInterrupt passes through as soon as the texts being read are done, one per thread.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        for (number, ids), vector in self._run(self._run_one, texts, before, after):
            vectors[number] += max(len(ids), 1) * vector
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return checked(vectors, self.identity)

    def _embed_tokens(
        self, texts: Sequence[str], before: Sequence[int], after: Sequence[int]
    ) -> list[TokenVectors]:
        """Return the vectors of each text's tokens, without those of ``before`` and ``after``.

        The windows of a long text come with the longest first.
        """
        import numpy as np

        parts: list[list[tuple[list[int], NDArray[np.float32]]]] = [[] for _ in texts]
        for (number, ids), found in self._run(self._run_rows, texts, before, after):
            parts[number].append((ids, found[len(before) : len(before) + len(ids)]))
        vectors = []
        for part in parts:
            joined = np.concatenate([found for _, found in part])
            joined /= np.linalg.norm(joined, axis=1, keepdims=True)
            vectors.append(TokenVectors(np.array([id_ for ids, _ in part for id_ in ids], np.int64), joined))
        return vectors

    def _windows(self, texts: Sequence[str], room: int) -> Iterator[Window]:
        """Yield the windows of at most ``room`` tokens of all texts, the longest texts and windows first."""
        # In this order the threads end together.
        for number in sorted(range(len(texts)), key=lambda number: -len(texts[number])):
            for ids in sorted(_cut(self._tokens(texts[number]), room), key=len, reverse=True):
                yield number, ids

    def _run(
        self, run: Run, texts: Sequence[str], before: Sequence[int], after: Sequence[int]
    ) -> list[tuple[Window, NDArray[np.float32]]]:
        """Run the model on each window between the tokens ``before`` and ``after``.

        A text is cut into tokens while the model reads those before it.
        """
        windows = self._windows(texts, self.max_tokens - len(before) - len(after))

        def found(window: Window) -> tuple[Window, NDArray[np.float32]]:
            return window, run([*before, *window[1], *after])

        first = list(islice(windows, 2))
        if self.threads == 1 or len(first) < 2:
            return [found(window) for window in chain(first, windows)]
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="castle-embed")
        try:
            return list(pool.map(found, chain(first, windows)))
        finally:
            pool.shutdown(cancel_futures=True)

    def _run_one(self, ids: list[int], output: str = OUTPUT) -> NDArray[np.float32]:
        import numpy as np

        found: NDArray[np.float32] = self._session.run([output], {INPUT: np.array(ids, dtype=np.int64)})[0]
        return found

    def _run_rows(self, ids: list[int]) -> NDArray[np.float32]:
        return self._run_one(ids, self.rows_name)


def thread_count() -> int:
    """Return CASTLE_THREADS, or the number of processors this process may use, at most 8."""
    named = os.environ.get("CASTLE_THREADS", "")
    if named.isascii() and named.isdigit() and int(named) > 0:
        return int(named)
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(_MOST_THREADS, os.cpu_count() or 1)


def _cut(ids: list[int], room: int) -> list[list[int]]:
    """Cut tokens into windows of nearly equal size, at least one."""
    count = max(1, -(-len(ids) // room))
    bounds = [len(ids) * number // count for number in range(count + 1)]
    return [ids[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]


def _session(model: bytes) -> Any:
    # Read by the library when it is loaded; otherwise it queues data about its use and looks up their host.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph is written the way it runs fastest; fusions beyond the basic ones slow it down.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # A plan of the memory per length of text would be kept for each of hundreds of lengths.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
