"""Cross-encoders of the bge-reranker family: a tiny one with random weights."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from castle.errors import ModelError
from tests.models.test_sentence_reranker import check_scores, loaded, make

pytest.importorskip("FlagEmbedding")

pytestmark = [
    pytest.mark.extras,
    # What torch, transformers and FlagEmbedding say while they are imported is theirs.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("tiny") / "bge-reranker-tiny")


def test_a_model_of_the_family(tiny: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoder = loaded(tiny)
    assert encoder.identity == str(tiny)
    check_scores(encoder, capfd)


def test_it_is_flag_embedding_that_scores(tiny: Path) -> None:
    from FlagEmbedding import FlagReranker

    logits = FlagReranker(str(tiny), devices=["cpu"]).compute_score(
        [("where", "a key"), ("where", "the sea")]
    )
    scores = loaded(tiny, device="cpu").score("where", ["a key", "the sea"])
    assert scores.tolist() == pytest.approx([1 / (1 + math.exp(-logit)) for logit in logits], abs=1e-4)


def test_a_classifier_is_no_cross_encoder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tells 2 classes apart"):
        loaded(make(tmp_path / "bge-reranker-two", 2))


def test_a_directory_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "bge-reranker-none").mkdir()
    with pytest.raises(ModelError, match="cannot be loaded"):
        loaded(tmp_path / "bge-reranker-none")
