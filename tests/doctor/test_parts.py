"""Checks of what a palace works with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.config import load
from castle.doctor import Context, parts
from castle.doctor.line import Result
from castle.errors import ModelError
from castle.llm import ollama
from castle.llm.waiting import PROBES
from castle.models.fake import FakeEmbedder
from castle.store.ledger import set_value
from castle.store.palace import Palace
from tests.doctor.conftest import looked
from tests.llm import servers


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No answer of another test is remembered, and a busy machine has time for its own server."""
    PROBES.clear()
    monkeypatch.setattr(ollama, "PROBE_S", 30.0)
    yield
    PROBES.clear()


def asked(check: str, *, online: bool = False, **settings: object) -> Result:
    """What a check that needs no palace says with these settings."""

    def none() -> Palace:
        raise AssertionError("no palace is needed")

    found: Result = getattr(parts, check)(Context(load(settings), none, online=online))
    return found


def test_settings_that_cannot_be_read(castle: Castle) -> None:
    assert looked(castle, parts.settings).status == "ok"
    found = looked(castle, parts.settings, trouble="castle.yaml:3: no")
    assert found.status == "failed"
    assert "castle.yaml:3" in found.detail


def test_the_embedder_embeds(castle: Castle) -> None:
    found = looked(castle, parts.embedder)
    assert found.status == "ok"
    assert found.detail.startswith("fake, ")


def test_another_embedder_than_the_palace_has(castle: Castle) -> None:
    castle.close()
    found = looked(Castle(castle.root, embedder="builtin"), parts.embedder)
    assert found.status == "failed"
    assert "holds vectors of" in found.detail
    assert "castle config set embedder_model" in found.help


def test_an_embedder_that_has_changed(castle: Castle) -> None:
    with castle._palace().ledger.write() as cx:
        set_value(cx, "embedder", '{"name": "fake", "dim": 16, "identity": "fake/0"}')
    assert looked(castle, parts.embedder).status == "failed"


def test_a_model_that_cannot_be_built(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ModelError("the weights are not installed")

    castle.close()
    monkeypatch.setattr("castle.store.palace.load_embedder", fail)
    found = looked(castle, parts.embedder)
    assert (found.status, found.detail) == ("failed", "the weights are not installed")


def test_a_model_that_embeds_nothing_usable(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setattr(FakeEmbedder, "embed_documents", lambda self, texts: np.zeros((1, self.identity.dim)))
    assert "nothing usable" in looked(castle, parts.embedder).detail


def test_the_embedder_without_a_palace(tmp_path: Path) -> None:
    assert looked(Castle(tmp_path / "none", embedder="fake"), parts.embedder).status == "ok"
    found = looked(Castle(tmp_path / "none", embedder="nothing-known"), parts.embedder)
    assert found.status == "failed"


def test_a_cache_that_cannot_be_written(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castle.doctor.parts.os.access", lambda *_: False)
    assert "built at every start" in looked(castle, parts.embedder).detail


def test_cross_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked("cross_encoder").status == "ok"
    assert asked("cross_encoder", reranker="off").detail.startswith("not in use")
    monkeypatch.setattr("castle.doctor.parts.find_spec", lambda name: None)
    found = asked("cross_encoder", reranker="auto")
    assert found.status == "failed"
    assert "cognitive-castle[bge]" in found.help
    monkeypatch.setattr("castle.doctor.parts.find_spec", lambda name: object())
    found = asked("cross_encoder", reranker="nobody/has-this")
    assert found.status == "failed"
    assert "castle config set reranker builtin" in found.help


def test_a_language_model_that_nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked("language_model")
    assert (found.status, found.detail[:10]) == ("not checked", "not in use")


def test_a_language_model_that_was_named() -> None:
    with servers.serving(servers.ollama("{}", "m:latest")) as fake:
        given: dict[str, Any] = {"llm_provider": "ollama", "llm_model": "m", "llm_endpoint": fake.url}
        assert asked("language_model", **given).status == "ok"
        PROBES.clear()
        found = asked("language_model", **{**given, "llm_model": "other"})
        assert found.status == "failed"
        assert "other" in found.detail
        # Its models are listed, and nothing is generated.
        assert set(fake.asked) == {"/api/tags"}


def test_a_service_beyond_this_machine_is_asked_by_nobody_unless_told() -> None:
    given: dict[str, Any] = {"llm_provider": "anthropic", "llm_api_key": "k-123456"}
    given["llm_endpoint"] = "https://192.0.2.1"
    found = asked("language_model", **given)
    assert found.status == "not checked"
    assert found.help == "castle doctor --online"
    assert asked("language_model", online=True, **given).status == "ok"
    away: dict[str, Any] = {"llm_provider": "ollama", "llm_endpoint": "http://192.0.2.1:11434"}
    assert asked("language_model", **away).status == "not checked"


def test_a_provider_that_cannot_be_built() -> None:
    found = asked("language_model", llm_provider="openai-compat")
    assert found.status == "failed"


def test_soar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("soar_sml")
    found = asked("soar")
    assert found.status == "ok"
    broken = tmp_path / "rules.soar"
    broken.write_text("sp {half (state <s>\n", encoding="utf-8")
    found = asked("soar", soar_rules_path=str(broken))
    assert found.status == "failed"
    monkeypatch.setenv("CASTLE_SML_DISABLED", "1")
    assert asked("soar").detail.startswith("not in use")


def test_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked("versions")
    assert found.status == "ok"
    assert f"Python {sys.version_info.major}" in found.detail
    monkeypatch.setattr(parts, "_LIBRARIES", ("lancedb", "no-such-library"))
    found = asked("versions")
    assert found.status == "failed"
    assert "no-such-library" in found.detail
