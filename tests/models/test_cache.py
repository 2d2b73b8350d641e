from __future__ import annotations

import logging
from pathlib import Path

import pytest

from castle.models.cache import cache_root, cached_model


class _Builder:
    """Counts how often it builds."""

    def __init__(self, model: bytes = b"a model") -> None:
        self.model = model
        self.calls = 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.model


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASTLE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_root_without_the_variable_is_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASTLE_CACHE_DIR", raising=False)
    assert cache_root().name == "cognitive-castle"


def test_looking_for_the_root_creates_nothing(root: Path) -> None:
    assert cache_root() == root
    assert not root.exists()


def test_a_model_is_built_once(root: Path) -> None:
    build = _Builder()
    assert cached_model("m", build) == cached_model("m", build) == b"a model"
    assert build.calls == 1
    assert sorted(path.name for path in (root / "models").iterdir()) == ["m.lock", "m.onnx", "m.onnx.sha256"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("m.onnx", b"a mode"), ("m.onnx", b""), ("m.onnx.sha256", b"\xff\xfe"), ("m.onnx.sha256", b"")],
)
def test_a_damaged_file_is_built_again_with_a_warning(
    root: Path, caplog: pytest.LogCaptureFixture, name: str, content: bytes
) -> None:
    build = _Builder()
    cached_model("m", build)
    (root / "models" / name).write_bytes(content)
    assert cached_model("m", build) == b"a model"
    assert build.calls == 2
    assert "m.onnx is damaged" in caplog.text
    cached_model("m", build)
    assert build.calls == 2


def test_a_missing_checksum_is_not_trusted(root: Path) -> None:
    cached_model("m", _Builder(b"old"))
    (root / "models" / "m.onnx.sha256").unlink()
    assert cached_model("m", _Builder(b"new")) == b"new"


def test_a_failed_build_leaves_no_model(root: Path) -> None:
    def fail() -> bytes:
        raise ValueError("no weights")

    with pytest.raises(ValueError, match="no weights"):
        cached_model("m", fail)
    assert [path.name for path in (root / "models").iterdir()] == ["m.lock"]
    assert cached_model("m", _Builder()) == b"a model"


def test_a_failed_write_leaves_no_temporary_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("castle.models.cache.os.fsync", full)
    build = _Builder()
    assert cached_model("m", build) == b"a model"
    assert build.calls == 1
    assert "No space left" in caplog.text
    assert [path.name for path in (root / "models").iterdir()] == ["m.lock"]


def test_where_nothing_can_be_written_it_is_built_for_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setenv("CASTLE_CACHE_DIR", str(blocked / "cache"))
    build = _Builder()
    assert cached_model("m", build) == b"a model"
    assert build.calls == 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "cannot be kept" in caplog.text


def test_a_kept_model_is_read_without_writing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached_model("m", _Builder())

    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    monkeypatch.setattr("castle.models.cache.os.open", read_only)
    build = _Builder(b"other")
    assert cached_model("m", build) == b"a model"
    assert build.calls == 0
