"""Late interaction over the built-in model, and the cache of token vectors."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.errors import ModelError
from castle.models import late as late_module
from castle.models.base import EmbedderIdentity
from castle.models.build import build_model, read_source
from castle.models.builtin import _REVISION, BuiltinEmbedder
from castle.models.cache import cached_model
from castle.models.encoder import OnnxEmbedder, TokenVectors, _session
from castle.models.fake import FakeEmbedder
from castle.models.graph import INPUT, OUTPUT, with_output
from castle.models.late import TUNINGS, LateInteraction
from castle.models.registry import load_embedder
from castle.models.token_cache import TokenCache

QUERY = "Where did Caroline adopt the puppy?"
TEXTS = [
    "Melanie: The weather was lovely, we painted the whole afternoon.",
    "Caroline: We got our little dog from the animal shelter downtown last Friday!",
    "The adapter must be plugged into the port before the firmware is updated.",
]


def test_the_answer_comes_first_and_nothing_like_it_is_not_confident(builtin: BuiltinEmbedder) -> None:
    late = LateInteraction(builtin)
    scores = late.score(QUERY, TEXTS)
    assert scores.dtype == np.float32
    assert scores.argmax() == 1
    assert ((scores >= 0) & (scores <= 1)).all()
    assert late.score(QUERY, ["Caroline adopted the puppy in Denver."])[0] > late.confident > scores[2]


def test_a_score_depends_on_nothing_but_query_and_text(builtin: BuiltinEmbedder) -> None:
    together = LateInteraction(builtin).score(QUERY, [*TEXTS, TEXTS[1], *(f"filler {n}" for n in range(40))])
    alone = [LateInteraction(builtin).score(QUERY, [text])[0] for text in TEXTS]
    assert together[:3].tolist() == alone
    assert together[3] == together[1]


@pytest.mark.parametrize("text", ["", " \n", "half a \ud83c pair", "城 ключ 🏰", "word " * 2000, "\0"])
def test_any_text_and_query_will_do(builtin: BuiltinEmbedder, text: str) -> None:
    late = LateInteraction(builtin)
    scores = late.score("the word", [text, "a word"])
    assert np.isfinite(scores).all()
    assert scores[1] > 0
    assert np.isfinite(late.score(f"what is the word {text}", ["a word", ""])).all()


@pytest.mark.parametrize("query", ["城の鍵はどこですか", "Где ключ от подвала?", "where 地下室的钥匙在哪里"])
def test_a_script_that_the_model_cannot_read_is_left_alone(builtin: BuiltinEmbedder, query: str) -> None:
    with pytest.raises(ModelError, match="no script but the Latin"):
        LateInteraction(builtin).score(query, TEXTS)


@pytest.mark.parametrize("query", ["¿Dónde está la llave?", "Schlüssel für Москва", "2023-05-01 !?", "🏰"])
def test_accents_digits_and_signs_are_no_foreign_script(builtin: BuiltinEmbedder, query: str) -> None:
    assert LateInteraction(builtin).score(query, [query])[0] > 0.5


def test_nothing_answers_nothing(builtin: BuiltinEmbedder) -> None:
    late = LateInteraction(builtin)
    assert late.score("", ["a word"]).tolist() == [0.0]
    assert late.score("a word", [""]).tolist() == [0.0]
    assert late.score("a word", []).shape == (0,)


def test_texts_answer_together_what_none_of_them_answers_alone(builtin: BuiltinEmbedder) -> None:
    late = LateInteraction(builtin)
    first, second = "We drove to the lake in July.", "The blue canoe was a present from Martin."
    query = "Who gave me the canoe that I took to the lake?"
    both, one, twice, other = late.compare(query, [[first, second], [second], [second, second], [TEXTS[2]]])
    assert both > one > other
    assert twice == one


class Axes:
    """A model for which a word is the axis of its letter: equally rare ones, at right angles."""

    identity = EmbedderIdentity("builtin", 4, "axes")

    def embed_tokens(self, texts: Sequence[str], *, query: bool = False) -> list[TokenVectors]:
        letters = [["abcd".index(word) for word in text.split()] for text in texts]
        return [TokenVectors(np.full(len(row), 5000), np.eye(4, dtype=np.float32)[row]) for row in letters]


def test_what_every_group_has_tells_them_apart_the_least() -> None:
    late = LateInteraction(Axes())
    slope = TUNINGS["builtin"].slope
    # Of two parts, both groups have the first and one has the second: nearly all hangs on that.
    common, rare = math.log(1 / 0.99), math.log(2)
    has, has_not = late.compare("a b", [["a", "b"], ["a c"]])
    assert has == pytest.approx(slope)
    assert has_not == pytest.approx(slope * common / (common + rare))
    # Where each has another part, both weigh the same.
    assert late.compare("a b", [["a"], ["c", "b"]]) == pytest.approx([slope / 2, slope / 2])


def test_what_was_scored_is_not_read_again(builtin: BuiltinEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    late = LateInteraction(builtin)
    expected = LateInteraction(builtin).compare(QUERY, [TEXTS[:2], TEXTS[2:]])
    late.score(QUERY, TEXTS)
    monkeypatch.setattr(late, "_model", None)
    assert late.compare(QUERY, [TEXTS[:2], TEXTS[2:]]).tolist() == expected.tolist()


def test_groups_without_words_come_last_and_nothing_tells_nothing(builtin: BuiltinEmbedder) -> None:
    late = LateInteraction(builtin)
    found = late.compare(QUERY, [[TEXTS[1]], [""], [], [TEXTS[2]]])
    assert found[0] > found[3] == found[1] == found[2]
    assert late.compare("", [["a word"], ["another"]]).tolist() == [0.0, 0.0]
    assert late.compare(QUERY, []).shape == (0,)
    assert np.isfinite(late.compare("word", [["word"], ["word"]])).all()


def test_all_of_a_long_text_is_read(builtin: BuiltinEmbedder) -> None:
    late = LateInteraction(builtin)
    filler = "The cat sleeps on the warm roof. " * 90
    without, with_it = late.score(QUERY, [filler, f"{filler}Caroline adopted the puppy in Denver."])
    assert with_it > 100 * without


def test_a_text_is_the_mean_of_its_tokens(builtin: BuiltinEmbedder) -> None:
    (vectors,) = builtin.embed_tokens([TEXTS[1]])
    assert vectors.rows.shape == (len(vectors.ids), 384)
    assert np.allclose(np.linalg.norm(vectors.rows, axis=1), 1, atol=1e-5)
    assert vectors.rows.mean(axis=0) @ builtin.embed_query(TEXTS[1]) > 0.5
    assert builtin.embed_tokens([]) == []


@pytest.mark.parametrize("name", ["builtin", pytest.param("multilingual", marks=pytest.mark.extras)])
def test_the_rows_are_those_of_which_the_vector_is_the_mean(name: str) -> None:
    embedder = load_embedder(name)
    assert isinstance(embedder, OnnxEmbedder)
    ids = [embedder._tokens(text) for text in TEXTS]
    for each in ids:
        mean = embedder._run_rows(each).mean(axis=0)
        assert np.allclose(mean / np.linalg.norm(mean), embedder._run_one(each), atol=1e-5)
    late = LateInteraction(embedder)  # type: ignore[arg-type]
    assert late.score(QUERY, TEXTS).argmax() == 1


def test_vectors_are_the_same_to_the_bit_without_the_rows(builtin: BuiltinEmbedder) -> None:
    plain = _session(cached_model(f"all-MiniLM-L6-v2-{_REVISION}", lambda: build_model(read_source())))
    for text in TEXTS:
        ids = np.array(builtin._tokens(text), dtype=np.int64)
        assert np.array_equal(plain.run([OUTPUT], {INPUT: ids})[0], builtin._run_one(ids.tolist()))


def test_another_output_leaves_the_model_as_it_is() -> None:
    from onnx import TensorProto, helper, load_from_string

    nodes = [helper.make_node("Exp", ["x"], ["middle"]), helper.make_node("Log", ["middle"], [OUTPUT])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", OUTPUT))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y])).SerializeToString()
    more = load_from_string(with_output(model, "middle"))
    assert [output.name for output in more.graph.output] == [OUTPUT, "middle"]
    del more.graph.output[1]
    assert more.SerializeToString() == model


def test_rare_words_weigh_more_than_common_ones(builtin: BuiltinEmbedder) -> None:
    late = LateInteraction(builtin)
    mark, the, puppy, seldom = late._weights(np.array([1029, 1996, 17022, 30000]))
    assert 0 < mark < the < puppy < seldom


def test_an_embedder_without_token_vectors_is_refused() -> None:
    with pytest.raises(ModelError, match="'fake'"):
        LateInteraction(FakeEmbedder())  # type: ignore[arg-type]


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([2, 8, 384]))
def test_packing_turns_rows_only_a_little(seed: int, count: int, dim: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    packed = late_module._pack(rows)
    assert len(packed) == count * dim // 2
    back = late_module._unpack(packed, dim)
    cosines = (rows * back).sum(axis=1) / np.linalg.norm(back, axis=1)
    assert (cosines > 0.97).all()


class Counting:
    """The built-in model, counting the texts it reads."""

    def __init__(self, model: BuiltinEmbedder) -> None:
        self.identity = model.identity
        self.read: list[str] = []
        self._model = model

    def embed_tokens(self, texts: list[str], *, query: bool = False) -> list[TokenVectors]:
        if not query:
            self.read += texts
        return self._model.embed_tokens(texts, query=query)


def test_what_was_read_once_is_kept_in_memory_and_on_disk(builtin: BuiltinEmbedder, tmp_path: Path) -> None:
    model = Counting(builtin)
    cache = TokenCache(tmp_path / "tokens.sqlite3")
    late = LateInteraction(model, cache)  # type: ignore[arg-type]
    late.prepare(TEXTS[:1])
    assert model.read == TEXTS[:1]
    first = late.score(QUERY, TEXTS)
    assert model.read == TEXTS
    assert cache.memory_bytes() > 0
    assert cache.disk_bytes() >= cache.memory_bytes()
    other = LateInteraction(model, TokenCache(tmp_path / "tokens.sqlite3"))  # type: ignore[arg-type]
    assert late.score(QUERY, TEXTS).tolist() == first.tolist() == other.score(QUERY, TEXTS).tolist()
    assert model.read == TEXTS


def test_damage_is_made_good(builtin: BuiltinEmbedder, tmp_path: Path) -> None:
    path = tmp_path / "tokens.sqlite3"
    expected = LateInteraction(builtin, TokenCache(path)).score(QUERY, TEXTS).tolist()
    for sql in (
        "UPDATE entries SET data = zeroblob(size)",
        "UPDATE entries SET data = substr(data, 2)",
        "UPDATE entries SET data = 'text', crc = 'x', used = 'y', size = NULL",
        "DROP TABLE entries",
    ):
        with sqlite3.connect(path) as connection:
            connection.execute(sql)
        connection.close()
        assert LateInteraction(builtin, TokenCache(path)).score(QUERY, TEXTS).tolist() == expected
    for data in (b"", b"no database", os.urandom(8192), path.read_bytes()[:5000]):
        path.write_bytes(data)
        assert LateInteraction(builtin, TokenCache(path)).score(QUERY, TEXTS).tolist() == expected
    assert _count(path) == len(TEXTS)


def _count(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT COUNT(*) FROM entries").fetchone()
    connection.close()
    return int(count)
