"""Writes the graph of a BERT encoder that multiplies integers, as the embedders on ONNX Runtime run it.

One text per run: the graph has no batch axis, no padding and no mask, so that a vector depends on nothing
but its own text.

Activations are quantised while it runs. The input of the attention layers has one scale for the text. The two
layers of the feed-forward block have one scale per token, because single tokens reach many times the others'
range: per-text scales there cost three quarters of the total error of all-MiniLM-L6-v2 (cosine to float32
.993 instead of .998).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INPUT, OUTPUT = "ids", "embedding"
MICROSOFT = "com.microsoft"

_EPSILON = 1e-12
_OPSET, _IR_VERSION = 20, 10
_FLOAT = 1
# GELU never goes below -0.17: where a row's maximum is taken as 1.7 at least, values are in [-0.1, 1] of it.
_GELU_FLOOR, _GELU_LEAST_MAXIMUM = 0.1, 1.7


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of an encoder: ``width`` is that of a token's row."""

    layers: int
    heads: int
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A linear layer: int8 ``weight`` (inputs, outputs), float32 ``scale`` and ``bias`` (outputs,)."""

    weight: NDArray[np.int8]
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]


class Weights(Protocol):
    """The tensors of a model by the names that BERT's own implementation gives them."""

    def words(self, graph: Graph) -> str:
        """Add the look-up of ``ids`` in the table of words: (tokens, width) in float32."""

    def places(self) -> NDArray[np.float32]:
        """Return the sum of position and type embedding for every position."""

    def plain(self, name: str) -> NDArray[np.float32]:
        """Return a tensor of one axis."""

    def dense(self, *names: str) -> Dense:
        """Return linear layers side by side as one."""


class Graph:
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

    def nibbles(self, value: NDArray[np.int8]) -> str:
        """Add a constant of whole numbers from -8 to 7 in 4 bits each, and return its name."""
        from onnx import TensorProto, helper

        name = f"constant_{len(self.constants)}"
        flat = value.reshape(-1).view("uint8") & 15
        packed = (flat[0::2] | flat[1::2] << 4).tobytes()
        self.constants.append(helper.make_tensor(name, TensorProto.INT4, value.shape, packed, raw=True))
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


def encoder(name: str, shape: Shape, weights: Weights) -> bytes:
    """Return the serialised ONNX model: int64 ``ids`` of shape (tokens,) to a unit ``embedding`` of (width,).

    ``ids`` include the tokens that begin and end a text. The embedding is the mean over all tokens, of
    unit length.
    """
    import numpy as np
    from onnx import TensorProto, helper

    graph = Graph()
    rows = _embeddings(graph, weights)
    for number in range(shape.layers):
        rows = _layer(graph, shape, weights, f"encoder.layer.{number}.", rows)
    mean = graph.add("ReduceMean", rows, graph.constant(np.array([0])), keepdims=0)
    graph.nodes.append(helper.make_node("LpNormalization", [mean], [OUTPUT], axis=-1, p=2))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            name,
            [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["tokens"])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [shape.width])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=_IR_VERSION,
        producer_name="cognitive-castle",
    )
    built: bytes = model.SerializeToString()
    return built


def with_output(model: bytes, name: str) -> bytes:
    """Return a serialised model that also gives out the float32 tensor of this name, at most 100 letters.

    Protocol Buffers read two messages one after the other as one: the second adds an output to the first,
    which stays as it is. So a model on disk need neither be changed nor parsed.
    """

    def field(number: int, content: bytes) -> bytes:
        return bytes((number << 3 | 2, len(content))) + content

    tensor = field(1, bytes((1 << 3, _FLOAT)))
    output = field(1, name.encode("ascii")) + field(2, tensor)
    return model + field(7, field(12, output))


def layer_names(layers: int) -> Iterator[str]:
    """Name the linear layers in the order in which the model uses them."""
    parts = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
    )
    for number in range(layers):
        for part in parts:
            yield f"encoder.layer.{number}.{part}"


def _embeddings(graph: Graph, weights: Weights) -> str:
    """Add the sum of word, position and type embeddings, normalised: (tokens, width)."""
    import numpy as np

    words = weights.words(graph)
    zero = graph.constant(np.array([0]))
    places = graph.add("Slice", graph.constant(weights.places()), zero, graph.add("Shape", INPUT), zero)
    return _normalise(graph, weights, "embeddings.LayerNorm", graph.add("Add", words, places))


def _layer(graph: Graph, shape: Shape, weights: Weights, prefix: str, rows: str) -> str:
    """Add one transformer layer: (tokens, width) to the same shape."""
    import numpy as np

    axis = graph.constant(np.array([0]))
    joined = weights.dense(*(f"{prefix}attention.self.{part}" for part in ("query", "key", "value")))
    batch = graph.add("Unsqueeze", _scaled_by_text(graph, joined, rows), axis)
    thirds = graph.constant(np.array([shape.width] * 3))
    parts = graph.split("Split", batch, thirds, outputs=3, axis=-1)
    attended = graph.add("MultiHeadAttention", *parts, domain=MICROSOFT, num_heads=shape.heads)
    attended = graph.add("Squeeze", attended, axis)
    attended = _scaled_by_text(graph, weights.dense(f"{prefix}attention.output.dense"), attended)
    rows = _normalise(graph, weights, f"{prefix}attention.output.LayerNorm", graph.add("Add", attended, rows))

    inner = _scaled_by_token(graph, weights.dense(f"{prefix}intermediate.dense"), rows, after_gelu=False)
    inner = graph.add("Gelu", inner)
    inner = _scaled_by_token(graph, weights.dense(f"{prefix}output.dense"), inner, after_gelu=True)
    return _normalise(graph, weights, f"{prefix}output.LayerNorm", graph.add("Add", inner, rows))


def _normalise(graph: Graph, weights: Weights, name: str, rows: str) -> str:
    """Add a layer normalisation; the fused SkipLayerNormalization is several times slower on CPUs."""
    gain = graph.constant(weights.plain(f"{name}.weight"))
    bias = graph.constant(weights.plain(f"{name}.bias"))
    return graph.add("LayerNormalization", rows, gain, bias, axis=-1, epsilon=_EPSILON)


def _scaled_by_text(graph: Graph, dense: Dense, rows: str) -> str:
    """Add a linear layer whose input is quantised with one scale and zero point."""
    import numpy as np

    return graph.add(
        "DynamicQuantizeMatMul",
        rows,
        graph.constant(dense.weight),
        graph.constant(dense.scale),
        graph.constant(np.zeros_like(dense.scale, dtype=np.int8)),
        graph.constant(dense.bias),
        domain=MICROSOFT,
    )


def _scaled_by_token(graph: Graph, dense: Dense, rows: str, *, after_gelu: bool) -> str:
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
        domain=MICROSOFT,
    )
    return graph.add("Add", graph.add("Mul", product, scales), graph.constant(dense.bias))
