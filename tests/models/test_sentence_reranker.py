"""Cross-encoders of sentence-transformers: tiny ones with random weights, made here."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castle.errors import ModelError
from castle.models import sentence, sentence_reranker
from castle.models.base import CrossEncoder
from castle.models.rerankers import load_cross_encoder

pytest.importorskip("sentence_transformers")

pytestmark = [
    pytest.mark.extras,
    # What torch and transformers say while they are imported is theirs.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]

MAKE = """
import string, sys
from pathlib import Path
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

path, labels = Path(sys.argv[1]), int(sys.argv[2])
path.mkdir(parents=True)
letters = list(string.ascii_lowercase + string.digits + string.punctuation)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
(path / "vocab.txt").write_text("\\n".join(words), encoding="utf-8")
torch.manual_seed(7)
BertTokenizerFast(str(path / "vocab.txt"), model_max_length=64).save_pretrained(path)
config = BertConfig(vocab_size=len(words), hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=48, max_position_embeddings=600, num_labels=labels,
                    initializer_range=0.5)
BertForSequenceClassification(config).save_pretrained(path)
"""
_ODD = ["a key", "the cellar is dark " * 300, "", "half a \ud83c pair", "城 ключ"]
TEXTS = [*_ODD, *(f"number {number}" for number in range(40))]


def make(path: Path, labels: int = 1) -> Path:
    subprocess.run([sys.executable, "-c", MAKE, str(path), str(labels)], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("tiny") / "cross")


def loaded(name: Path | str, **options: Any) -> CrossEncoder:
    encoder = load_cross_encoder(str(name), **options)
    assert encoder is not None
    return encoder


def check_scores(encoder: CrossEncoder, capfd: pytest.CaptureFixture[str]) -> None:
    """Scores are relevances, in the order of the texts, whatever they are scored with."""
    capfd.readouterr()
    scores = encoder.score("where is the key", TEXTS)
    assert scores.dtype == np.float32
    assert scores.shape == (len(TEXTS),)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert len(set(scores.round(4).tolist())) > 10
    again = encoder.score("where is the key", TEXTS[::-1])[::-1]
    assert np.allclose(scores, again, atol=1e-4)
    assert encoder.score("", [""]).shape == (1,)
    assert encoder.score("where", []).shape == (0,)
    assert capfd.readouterr() == ("", "")


def test_a_model_in_a_directory(tiny: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoder = loaded(tiny)
    assert encoder.identity == str(tiny)
    assert (encoder.confident, encoder.reason) == (0.0, "")
    check_scores(encoder, capfd)


def test_logits_go_through_a_sigmoid_whatever_the_model_says(tiny: Path) -> None:
    from sentence_transformers import CrossEncoder as Model
    from torch.nn import Identity

    logits = Model(str(tiny), local_files_only=True, device="cpu").predict(
        [("where", "a key"), ("where", "the sea")], activation_fn=Identity(), show_progress_bar=False
    )
    scores = loaded(tiny, device="cpu").score("where", ["a key", "the sea"])
    expected = [1 / (1 + math.exp(-logit)) for logit in logits.tolist()]
    assert scores.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_hub_model_on_this_machine_is_loaded_without_a_network(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="run: hf download mixedbread-ai/tiny"):
        load_cross_encoder("mixedbread-ai/tiny")
    kept = tmp_path / "models--mixedbread-ai--tiny"
    shutil.copytree(tiny, kept / "snapshots" / "abc123")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc123", encoding="ascii")
    encoder = loaded("mixedbread-ai/tiny")
    assert "mixedbread-ai/tiny" in encoder.identity
    assert "abc123" in encoder.identity
    assert encoder.score("a", ["b"]).shape == (1,)


def test_a_classifier_is_no_cross_encoder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tells 3 classes apart"):
        load_cross_encoder(str(make(tmp_path / "three", 3)))


def test_a_directory_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_cross_encoder(str(tmp_path))


def test_on_a_processor_its_own_model_is_taken(tiny: Path) -> None:
    assert loaded("no/model", device="cpu", cpu_name=str(tiny)).identity == str(tiny)


def test_a_full_graphics_card_means_the_processor_and_a_reason(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    real = sentence_reranker._sentence_scorer

    def scorer(path: Path, device: str) -> sentence_reranker.Scorer:
        if device == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(path, device)

    monkeypatch.setattr(sentence, "torch_device", lambda wanted: "cuda" if wanted == "auto" else wanted)
    monkeypatch.setattr(sentence_reranker, "_sentence_scorer", scorer)
    encoder = loaded(tiny)
    assert encoder.reason == f"cuda has too little memory for {tiny}; {tiny} runs on the processor"
    assert encoder.score("a", ["b"]).shape == (1,)


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_a_device_that_is_not_here_is_refused(tiny: Path, device: str) -> None:
    with pytest.raises(ModelError, match="no device"):
        load_cross_encoder(str(tiny), device=device)


def test_a_model_that_fails_is_an_error_of_a_model() -> None:
    def failing(pairs: list[tuple[str, str]]) -> list[float]:
        raise RuntimeError("CUDA out of memory\nand more")

    encoder = sentence_reranker.TorchCrossEncoder("mine", failing)
    with pytest.raises(ModelError, match="cross-encoder mine failed: CUDA out of memory$"):
        encoder.score("a", ["b"])
    endless = sentence_reranker.TorchCrossEncoder("mine", lambda pairs: [math.nan] * len(pairs))
    with pytest.raises(ModelError, match="outside"):
        endless.score("a", ["b"])
