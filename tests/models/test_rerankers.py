"""Cross-encoders by name, without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.errors import ModelError
from castle.models import sentence_reranker
from castle.models.base import checked_scores
from castle.models.builtin import BuiltinEmbedder
from castle.models.fake import FakeEmbedder
from castle.models.flag_reranker import is_bge
from castle.models.rerankers import FakeCrossEncoder, cross_encoder_names, load_cross_encoder


def test_the_built_in_one_reads_with_the_embedder_that_is_there(builtin: BuiltinEmbedder) -> None:
    encoder = load_cross_encoder("builtin", embedder=builtin)
    assert encoder is not None
    assert builtin.identity.identity in encoder.identity
    other = load_cross_encoder("builtin", embedder=FakeEmbedder())
    assert other is not None
    assert other.identity == encoder.identity
    assert encoder.score("a key", ["a key", "the sea"]).argmax() == 0
    assert encoder.reason == ""


def test_off_is_none() -> None:
    assert load_cross_encoder("off") is None
    assert cross_encoder_names() == ("builtin", "fake", "off")


@pytest.mark.parametrize("name", ["buildin", "", "bge"])
def test_an_unknown_name_is_an_error_that_helps(name: str) -> None:
    with pytest.raises(ModelError, match="no cross-encoder.*did you mean"):
        load_cross_encoder(name)
    with pytest.raises(ModelError, match="no cross-encoder"):
        load_cross_encoder("BAAI/bge-reranker-base", cpu_name=name)


@pytest.mark.parametrize("name", ["BAAI/bge-reranker-base", "mixedbread-ai/mxbai-rerank-large-v2"])
def test_without_the_extra_the_error_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_reranker, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"pip install 'cognitive-castle\[bge\]'"):
        load_cross_encoder(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BAAI/bge-reranker-v2-m3", True),
        ("BAAI/bge-reranker-base", True),
        ("/models/BGE-Reranker-large/", True),
        ("BAAI/bge-reranker-v2-gemma", False),
        ("BAAI/bge-reranker-v2-minicpm-layerwise", False),
        ("mixedbread-ai/mxbai-rerank-base-v1", False),
        ("BAAI/bge-m3", False),
    ],
)
def test_the_family_is_known_by_name(name: str, expected: bool) -> None:
    assert is_bge(name) is expected


@given(st.text(), st.lists(st.text(), max_size=5))
def test_the_fake_counts_words(query: str, texts: list[str]) -> None:
    encoder = FakeCrossEncoder()
    scores = checked_scores(encoder.score(query, texts), len(texts), encoder.identity)
    assert scores.tolist() == encoder.score(query, texts).tolist()


def test_the_fake_prefers_shared_words() -> None:
    scores = FakeCrossEncoder().score("The blue key", ["a KEY", "the blue key!", "", "sea"])
    assert scores.tolist() == pytest.approx([1 / 3, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("scores", [[0.5], [0.5, 1.1], [-0.1, 0.5], [np.nan, 0.5], [[0.5, 0.5]]])
def test_scores_that_are_none_are_refused(scores: list[float]) -> None:
    with pytest.raises(ModelError, match="cross-encoder mine returned"):
        checked_scores(np.array(scores, dtype=np.float32), 2, "mine")


def test_the_module_loads_no_model_library(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, castle.models.rerankers; print(*{'torch', 'onnxruntime', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
