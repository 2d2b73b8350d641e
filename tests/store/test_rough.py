"""What vectors of 8 bits choose always holds the nearest ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from castle.store.rough import Rough


def units(seed: int, rows: int, dim: int, spread: float) -> NDArray[np.float32]:
    """Return unit vectors around one; a small spread brings them near to each other."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal(dim) + spread * random.standard_normal((rows, dim))
    # A few numbers far from the rest make for a coarse scale.
    vectors[:, :2] *= random.choice([1.0, 30.0], (rows, 2))
    found: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return found


def kept(vectors: NDArray[np.float32], step: int) -> Rough:
    rough = Rough.room(len(vectors) + 3, vectors.shape[1])
    for start in range(0, len(vectors), step):
        rough.put(start, vectors[start : start + step])
    return rough.first(len(vectors))


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 300),
    dim=st.sampled_from([8, 24, 384]),
    limit=st.integers(1, 40),
    spread=st.sampled_from([0.001, 0.05, 1.0, 5.0]),
)
def test_none_of_the_nearest_is_left_out(seed: int, rows: int, dim: int, limit: int, spread: float) -> None:
    vectors = units(seed, rows, dim, spread)
    question = units(seed + 1, 1, dim, spread)[0] if seed % 2 else vectors[seed % rows]
    cosines = vectors.astype(np.float64) @ question.astype(np.float64)
    rough = kept(vectors, 64)
    for places in (np.arange(rows), np.arange(rows)[:: seed % 7 + 1]):
        chosen = rough.among_nearest(question, places, limit, 1e-5)
        assert set(chosen.tolist()) <= set(places.tolist())
        least = np.sort(cosines[places])[-min(limit, len(places))]
        left_out = np.setdiff1d(places, chosen)
        assert (cosines[left_out] < least - 1e-5).all()


def test_few_are_left_to_compare() -> None:
    vectors = units(7, 5000, 384, 5.0)
    rough = kept(vectors, 1024)
    assert len(rough.among_nearest(vectors[17], np.arange(5000), 100, 1e-5)) < 500


def test_the_bound_holds_for_every_row() -> None:
    vectors = units(3, 2000, 384, 1.0)
    rough = kept(vectors, 500)
    left_out = vectors.astype(np.float64) - rough.numbers * rough.scales[:, None].astype(np.float64)
    assert (np.linalg.norm(left_out, axis=1) <= rough.lengths).all()
    assert rough.lengths.max() == pytest.approx(0, abs=0.05)
