"""Models of the family of bge-m3: a tiny one made here, in FlagEmbedding beside sentence-transformers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from castle.models import flag_embedder
from castle.models.flag_embedder import FlagEngine, is_m3
from castle.models.registry import describe_embedder, load_embedder
from castle.models.sentence import SentenceEmbedder

pytestmark = [
    pytest.mark.extras,
    # What torch and transformers say while they are imported is theirs.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]

_DIM, _WINDOW = 24, 32

_MAKE = """
import string, sys
from pathlib import Path
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

root, dim, window = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
bare = root / "bare"
bare.mkdir(parents=True)
letters = list(string.ascii_lowercase + string.digits + string.punctuation)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
(bare / "vocab.txt").write_text("\\n".join(words), encoding="utf-8")
torch.manual_seed(11)
BertTokenizerFast(str(bare / "vocab.txt")).save_pretrained(bare)
config = BertConfig(vocab_size=len(words), hidden_size=dim, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=48, max_position_embeddings=64)
BertModel(config).save_pretrained(bare)
modules = [Transformer(str(bare), max_seq_length=window), Pooling(dim, pooling_mode="cls"), Normalize()]
SentenceTransformer(modules=modules, device="cpu").save(str(root / "model"))
torch.save(torch.nn.Linear(dim, dim).state_dict(), root / "model" / "colbert_linear.pt")
torch.save(torch.nn.Linear(dim, 1).state_dict(), root / "model" / "sparse_linear.pt")
"""

_TEXTS = [
    "",
    "a key",
    "the cellar " * 200,
    "half a \ud83c pair",
    "城 ключ",
    *(f"text {n}" for n in range(70)),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model of random weights with the parts of bge-m3."""
    root = tmp_path_factory.mktemp("m3")
    subprocess.run(
        [sys.executable, "-c", _MAKE, str(root / "m3"), str(_DIM), str(_WINDOW)],
        check=True,
        capture_output=True,
    )
    return root / "m3" / "model"


def test_its_vectors_are_those_of_sentence_transformers(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = load_embedder(str(tiny), "cpu")
    assert isinstance(flag, SentenceEmbedder)
    assert isinstance(flag._engine, FlagEngine)
    monkeypatch.setattr(flag_embedder, "find_spec", lambda _: None)
    plain = load_embedder(str(tiny), "cpu")
    assert isinstance(plain, SentenceEmbedder)
    assert not isinstance(plain._engine, FlagEngine)
    assert flag.identity == plain.identity == describe_embedder(str(tiny))
    assert (flag.max_tokens, flag.identity.dim) == (plain.max_tokens, plain.identity.dim) == (_WINDOW, _DIM)
    assert np.allclose(flag.embed_documents(_TEXTS), plain.embed_documents(_TEXTS), atol=1e-5)
    assert np.allclose(flag.embed_query("a key"), plain.embed_query("a key"), atol=1e-5)


def test_the_hubs_bge_m3_is_read_by_it(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from castle.models import hub

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setitem(hub.KNOWN, "BAAI/bge-m3", hub.KnownModel(_DIM, "bge-m3"))
    kept = tmp_path / "models--BAAI--bge-m3"
    shutil.copytree(tiny, kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc", encoding="ascii")
    found = load_embedder("bge-m3", "cpu")
    assert isinstance(found, SentenceEmbedder)
    assert isinstance(found._engine, FlagEngine)
    assert (found.identity.name, found.identity.identity) == ("BAAI/bge-m3", "bge-m3")


def test_without_the_files_of_sentence_transformers_the_tokenizer_knows_the_window(
    tiny: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m3"
    shutil.copytree(tiny, path)
    (path / "sentence_bert_config.json").unlink()
    tokenizer = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))
    (path / "tokenizer_config.json").write_text(
        json.dumps({**tokenizer, "model_max_length": 48}), encoding="utf-8"
    )
    assert FlagEngine(path, "cpu").max_tokens == 48
    (path / "tokenizer_config.json").write_text(
        json.dumps({**tokenizer, "model_max_length": 10**30}), encoding="utf-8"
    )
    assert FlagEngine(path, "cpu").max_tokens == 64


def test_other_models_are_none_of_the_family(tiny: Path) -> None:
    assert is_m3(tiny)
    assert not is_m3(tiny.parent / "bare")


def test_loading_and_embedding_say_nothing(tiny: Path) -> None:
    code = (
        "from castle.models.registry import load_embedder\n"
        f"load_embedder({str(tiny)!r}).embed_documents(['a key ' * 900, *'b' * 80])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
