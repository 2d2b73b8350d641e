from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from castle.errors import ModelError
from castle.models import hub
from castle.models.base import EmbedderIdentity
from castle.models.registry import describe_embedder, load_embedder

_TRANSFORMER = "sentence_transformers.models.Transformer"
_POOLING = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"


def _model(path: Path, *modules: tuple[str, str, dict[str, Any] | None], weights: bytes = b"weights") -> Path:
    """Write the configuration of a model; without modules it is a bare transformer of 48 dimensions."""
    path.mkdir(parents=True)
    (path / "config.json").write_text('{"model_type": "bert", "hidden_size": 48}', encoding="utf-8")
    (path / "model.safetensors").write_bytes(weights)
    if modules:
        listed = [{"type": kind, "path": place} for kind, place, _ in modules]
        (path / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    for _, place, config in modules:
        if place and config is not None:
            (path / place).mkdir()
            (path / place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def _in_cache(cache: Path, name: str, revision: str = "abc") -> Path:
    kept = cache / f"models--{name.replace('/', '--')}"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text(f"{revision}\n", encoding="ascii")
    return _model(kept / "snapshots" / revision)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test an empty place for hub models."""
    for name in ("SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "hub"


@pytest.mark.parametrize(
    ("name", "dim", "identity"),
    [
        ("BAAI/bge-m3", 1024, "bge-m3"),
        ("BAAI/bge-large-en-v1.5", 1024, "bge-large-en-v1.5"),
        (
            "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
            384,
            "paraphrase-ml-MiniLM-L12-v2",
        ),
        ("sentence-transformers/all-MiniLM-L6-v2", 384, "all-MiniLM-L6-v2"),
        ("BAAI/bge-small-en-v1.5", 384, "bge-small-en-v1.5"),
        ("intfloat/multilingual-e5-base", 768, "multilingual-e5-base"),
        ("intfloat/e5-large-v2", 1024, "e5-large-v2"),
    ],
)
def test_known_models_are_described_without_files(name: str, dim: int, identity: str) -> None:
    assert describe_embedder(name) == EmbedderIdentity(name, dim, identity)
    assert describe_embedder(name.partition("/")[2]) == EmbedderIdentity(name, dim, identity)


def test_known_models_have_the_prompts_that_they_were_trained_with() -> None:
    for name, model in hub.KNOWN.items():
        prompts = (model.query_prompt, model.document_prompt)
        if "-instruct" in name:
            assert prompts[0].startswith("Instruct: Given a web search query")
            assert prompts[0].endswith("\nQuery: ")
            assert prompts[1] == ""
        elif "e5-" in name:
            assert prompts == ("query: ", "passage: ")
        elif "bge-" in name and "-en-" in name:
            assert prompts == ("Represent this sentence for searching relevant passages: ", "")
        else:
            assert prompts == ("", "")
        assert hub.prompts_of(name) == hub.prompts_of(f"{name.partition('/')[2]}:latest") == prompts


@pytest.mark.parametrize("name", ["BAAI/bge-m3", "bge-m3"])
def test_a_missing_model_is_named_with_the_command_that_gets_it(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        hub.locate(name)
    assert str(caught.value) == "the model BAAI/bge-m3 is not on this machine; run: hf download BAAI/bge-m3"


def test_an_unknown_hub_model_cannot_be_described_before_it_is_here(cache: Path) -> None:
    with pytest.raises(ModelError, match="run: hf download someone/tiny-2.0$"):
        describe_embedder("someone/tiny-2.0")
    path = _in_cache(cache, "someone/tiny-2.0")
    found = describe_embedder("someone/tiny-2.0")
    assert hub.locate("someone/tiny-2.0") == path
    assert (found.name, found.dim) == ("someone/tiny-2.0", 48)
    assert found.identity.startswith("someone/tiny-2.0/")


def test_an_unfinished_download_is_a_missing_model(cache: Path) -> None:
    path = _in_cache(cache, "someone/tiny")
    shutil.rmtree(path)
    with pytest.raises(ModelError, match="run: hf download someone/tiny$"):
        hub.locate("someone/tiny")


@pytest.mark.parametrize("variable", ["SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE"])
def test_other_places_for_hub_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    path = _in_cache(tmp_path / "elsewhere", "BAAI/bge-m3")
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert hub.locate("bge-m3") == path


def test_the_usual_place_is_in_the_home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HOME")
    path = _in_cache(own_home / ".cache" / "huggingface" / "hub", "BAAI/bge-m3")
    assert hub.locate("BAAI/bge-m3") == path


@pytest.mark.parametrize(
    ("modules", "dim"),
    [
        ([], 48),
        ([(_TRANSFORMER, "", {})], 48),
        ([(_TRANSFORMER, "", {}), (_POOLING, "1", {"embedding_dimension": 48, "pooling_mode": "mean"})], 48),
        ([(_TRANSFORMER, "", {}), (_POOLING, "1", {"word_embedding_dimension": 48})], 48),
        (
            [
                (_TRANSFORMER, "", {}),
                (
                    _POOLING,
                    "1",
                    {
                        "word_embedding_dimension": 48,
                        "pooling_mode_cls_token": True,
                        "pooling_mode_mean_tokens": True,
                        "pooling_mode_max_tokens": False,
                    },
                ),
            ],
            96,
        ),
        (
            [
                (_TRANSFORMER, "", {}),
                (_POOLING, "1", {"embedding_dimension": 48, "pooling_mode": ["cls", "max"]}),
                ("x.Dense", "2", {"in_features": 96, "out_features": 16}),
                ("x.Normalize", "3", {}),
                ("x.Normalize", "4_without_files", None),
            ],
            16,
        ),
    ],
)
def test_the_length_of_vectors_comes_from_the_configuration(
    tmp_path: Path, modules: list[tuple[str, str, dict[str, Any] | None]], dim: int
) -> None:
    assert describe_embedder(str(_model(tmp_path / "m", *modules))).dim == dim


def test_a_model_keeps_its_identity_when_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = describe_embedder(str(_model(tmp_path / "a")))
    assert before.name == str(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.chdir(tmp_path)
    for name in ("b", "./b", str(tmp_path / "b")):
        assert describe_embedder(name) == EmbedderIdentity(str(tmp_path / "b"), 48, before.identity)


def test_other_files_are_another_identity(tmp_path: Path) -> None:
    large = bytes(5_000_000)
    pooling = (_POOLING, "1", {"pooling_mode": "mean"})
    paths = [
        _model(tmp_path / "first", weights=large),
        _model(tmp_path / "end", weights=large[:-1] + b"\1"),
        _model(tmp_path / "beginning", weights=b"\1" + large[1:]),
        _model(tmp_path / "size", weights=large + b"\0"),
        _model(tmp_path / "pooling", (_TRANSFORMER, "", {}), pooling, weights=large),
        _model(
            tmp_path / "cls", (_TRANSFORMER, "", {}), (_POOLING, "1", {"pooling_mode": "cls"}), weights=large
        ),
    ]
    assert len({describe_embedder(str(path)).identity for path in paths}) == len(paths)
    first = describe_embedder(str(paths[0]))
    (paths[0] / "README.md").write_text("a note", encoding="utf-8")
    assert describe_embedder(str(paths[0])) == first


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", "{}"),
        ("config.json", None),
        ("modules.json", '[{"type": "x.Transformer"}]'),
        ("modules.json", "3"),
    ],
)
def test_a_broken_configuration_is_one_line(tmp_path: Path, file: str, content: str | None) -> None:
    path = _model(tmp_path / "m")
    if content is None:
        (path / file).unlink()
    else:
        (path / file).write_text(content, encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        describe_embedder(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["/nowhere/model", "./model", "~/model", "a/b/c", "http://a/b"])
def test_a_path_without_a_model_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="there is no model in "):
        describe_embedder(name)


def test_known_names_mean_the_hub_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _model(tmp_path / "BAAI" / "bge-m3")
    assert describe_embedder("BAAI/bge-m3").dim == 1024
    with pytest.raises(ModelError, match="hf download"):
        hub.locate("BAAI/bge-m3")


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castle.models.sentence.find_spec", lambda _: None)
    with pytest.raises(ModelError) as caught:
        load_embedder("BAAI/bge-m3")
    assert str(caught.value).endswith("run: pip install 'cognitive-castle[bge]'")


def test_describing_imports_nothing_heavy(tmp_path: Path) -> None:
    path = _model(tmp_path / "m")
    code = (
        "import sys; from castle.models.registry import describe_embedder;"
        f"describe_embedder('BAAI/bge-m3'); describe_embedder({str(path)!r});"
        "heavy = {'numpy', 'torch', 'transformers', 'sentence_transformers', 'huggingface_hub'};"
        "sys.exit(str(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"
