from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from castle.models.builtin import BuiltinEmbedder
from castle.text.wordpiece import count_tokens

_GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))["texts"]
_SENTENCE = "The king keeps the crown in the north tower."


def _assert_units(vectors: NDArray[np.float32]) -> None:
    assert np.isfinite(vectors).all()
    assert np.allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5)


def test_related_sentences_are_nearer_than_unrelated_ones(builtin: BuiltinEmbedder) -> None:
    queries = ["How do I fix a flat bicycle tyre?", "Which database did we pick?", "symptoms of influenza"]
    answers = [
        "To repair a puncture, take the inner tube out of the bike wheel and patch it.",
        "We settled on PostgreSQL for storage.",
        "Flu usually brings fever, cough and aching muscles.",
    ]
    cosines = builtin.embed_documents(queries) @ builtin.embed_documents(answers).T
    related = np.diag(cosines)
    assert (related > 0.35).all()
    assert (cosines - np.diag(related) < 0.2).all()


@pytest.mark.parametrize("golden", _GOLDEN, ids=lambda golden: golden["text"][:12])
def test_vectors_are_those_of_the_float32_model(builtin: BuiltinEmbedder, golden: dict[str, Any]) -> None:
    vector = builtin.embed_query(golden["text"])
    assert vector @ np.array(golden["float32"]) > 0.995
    assert np.allclose(vector[:8], golden["builtin"], atol=0.01)


def test_a_vector_does_not_depend_on_what_it_is_embedded_with(builtin: BuiltinEmbedder) -> None:
    others = ["", "ok", "sqlite " * 900, "東京の天気", "A longer passage about nothing. " * 20]
    alone = builtin.embed_query(_SENTENCE)
    assert np.array_equal(builtin.embed_documents([*others, _SENTENCE, *others])[5], alone)
    assert np.array_equal(builtin.embed_documents([_SENTENCE] * 9)[7], alone)
    single = BuiltinEmbedder(threads=1)
    assert np.array_equal(single.embed_documents([*others, _SENTENCE])[5], alone)


def test_results_are_in_the_order_of_the_texts(builtin: BuiltinEmbedder) -> None:
    texts = [f"Room {number} " + "and so on " * (number * 7 % 11) for number in range(20)]
    vectors = builtin.embed_documents(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(vector, builtin.embed_query(text))


def test_no_texts_have_no_vectors(builtin: BuiltinEmbedder) -> None:
    assert builtin.embed_documents([]).shape == (0, 384)


def test_a_text_without_words_has_a_vector(builtin: BuiltinEmbedder) -> None:
    empty, blank, invisible = builtin.embed_documents(["", " \n\t", "\u200b\x00"])
    _assert_units(empty)
    assert np.array_equal(empty, blank)
    assert np.array_equal(empty, invisible)


def test_the_end_of_a_long_text_counts(builtin: BuiltinEmbedder) -> None:
    start = "The harvest festival starts at noon on the village green. " * 60
    end = "The database migration failed because the disk was full. " * 60
    assert count_tokens(start) > 2 * builtin.max_tokens
    first, both, last = builtin.embed_documents([start, start + end, end])
    assert first @ last < 0.2
    assert both @ first > 0.5
    assert both @ last > 0.5


def test_a_text_of_two_windows_is_their_mean(builtin: BuiltinEmbedder) -> None:
    half = "castle " * 254
    other = "garden " * 254
    vectors = builtin.embed_documents([half, other, half + other])
    mean = vectors[0] + vectors[1]
    assert np.allclose(vectors[2], mean / np.linalg.norm(mean), atol=1e-6)


def test_window_borders(builtin: BuiltinEmbedder) -> None:
    words = "the gate of the old castle was shut at dusk and two guards kept watch until morning".split()
    texts = [" ".join((words * 20)[:count]) for count in (253, 254, 255, 256)]
    assert [count_tokens(text) for text in texts] == [253, 254, 255, 256]
    vectors = builtin.embed_documents(texts)
    _assert_units(vectors)
    assert (vectors @ vectors.T > 0.95).all()


def test_a_word_of_ten_thousand_characters(builtin: BuiltinEmbedder) -> None:
    vectors = builtin.embed_documents(["x" * 10_000, "-" * 10_000, "城" * 10_000])
    _assert_units(vectors)


def test_other_scripts_and_broken_text(builtin: BuiltinEmbedder) -> None:
    texts = [
        "東京の天気は明日も雨です",
        "Где ключ от подвала?",
        "🏰🏰🏰",
        "half a \ud83c pair",
        "e\u0301te\u0301",
    ]
    _assert_units(builtin.embed_documents(texts))
    assert np.array_equal(builtin.embed_query("Été"), builtin.embed_query(texts[4]))


def test_texts_are_cut_into_tokens_while_the_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = BuiltinEmbedder(threads=2)
    tokens, run = embedder._tokens, embedder._run_one
    begun = Event()
    there = []

    def late(text: str) -> list[int]:
        there.append(text != "last" or begun.wait(10))
        return tokens(text)

    def running(ids: list[int]) -> NDArray[np.float32]:
        begun.set()
        return run(ids)

    monkeypatch.setattr(embedder, "_tokens", late)
    monkeypatch.setattr(embedder, "_run_one", running)
    embedder.embed_documents(["the longest text comes first", "then another one", "last"])
    assert there == [True, True, True]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_passes_through(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    embedder = BuiltinEmbedder(threads=threads)
    calls: list[int] = []

    def interrupted(ids: list[int]) -> NDArray[np.float32]:
        calls.append(len(ids))
        raise KeyboardInterrupt

    monkeypatch.setattr(embedder, "_run_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embedder.embed_documents([f"text {number}" for number in range(500)])
    assert len(calls) < 500


def test_threads_come_from_the_argument_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLE_THREADS", "3")
    assert BuiltinEmbedder().threads == 3
    assert BuiltinEmbedder(threads=2).threads == 2
    for nonsense in ("", "0", "-1", "many", "²"):
        monkeypatch.setenv("CASTLE_THREADS", nonsense)
        assert 1 <= BuiltinEmbedder().threads <= 8


_CHILD = """
import os, pathlib, time
import castle.models.build as build
original = build.build_model
def slow(source):
    with pathlib.Path(os.environ["BUILDS"]).open("a", encoding="utf-8") as file:
        file.write("built\\n")
    time.sleep(0.5)
    return original(source)
build.build_model = slow
from castle.models.registry import load_embedder
pathlib.Path(os.environ["VECTOR"]).write_bytes(load_embedder("builtin").embed_query("castle").tobytes())
"""


def test_two_processes_build_once_and_say_nothing(builtin: BuiltinEmbedder, tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    children = []
    for number in range(2):
        env = {
            **os.environ,
            "CASTLE_CACHE_DIR": str(tmp_path / "cache"),
            "BUILDS": str(builds),
            "VECTOR": str(tmp_path / f"vector{number}"),
        }
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", _CHILD], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    assert [child.communicate() for child in children] == [(b"", b"")] * 2
    assert builds.read_text(encoding="utf-8") == "built\n"
    expected = builtin.embed_query("castle").tobytes()
    assert [(tmp_path / f"vector{number}").read_bytes() for number in range(2)] == [expected] * 2
    assert len(list((tmp_path / "cache" / "models").iterdir())) == 3


def test_a_damaged_model_is_built_again(
    builtin: BuiltinEmbedder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("CASTLE_CACHE_DIR", str(tmp_path))
    BuiltinEmbedder()
    (kept,) = (tmp_path / "models").glob("*.onnx")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:1_000_000] + bytes([whole[1_000_000] ^ 1]) + whole[1_000_001:])
    vector = BuiltinEmbedder().embed_query(_SENTENCE)
    assert np.array_equal(vector, builtin.embed_query(_SENTENCE))
    assert "is damaged" in caplog.text
    assert kept.read_bytes() == whole


def test_without_a_place_to_keep_it_it_embeds_all_the_same(
    builtin: BuiltinEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setenv("CASTLE_CACHE_DIR", str(blocked))
    assert np.array_equal(BuiltinEmbedder().embed_query(_SENTENCE), builtin.embed_query(_SENTENCE))
