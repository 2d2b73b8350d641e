from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from castle.models.fake import FakeEmbedder


@given(st.lists(st.text(), max_size=5))
def test_any_text_has_a_unit_vector_that_depends_on_it_alone(texts: list[str]) -> None:
    embedder = FakeEmbedder()
    vectors = embedder.embed_documents(texts)
    assert vectors.shape == (len(texts), embedder.identity.dim)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(vector, embedder.embed_query(text))
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


def test_shared_words_bring_texts_near() -> None:
    near, far, query = FakeEmbedder().embed_documents(
        ["the castle has a moat", "invoices are due in May", "Does the castle have a moat?"]
    )
    assert query @ near > query @ far + 0.3


def test_vectors_are_the_same_on_every_machine() -> None:
    vector = FakeEmbedder().embed_query("castle")
    assert {int(place): float(vector[place]) for place in np.flatnonzero(vector)} == {60: 1.0}
