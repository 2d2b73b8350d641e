from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from castle.errors import ModelError
from castle.models.base import EmbedderIdentity, checked

_IDENTITY = EmbedderIdentity(name="tiny", dim=2, identity="tiny/1")


def _rows(*rows: tuple[float, float]) -> NDArray[np.float32]:
    return np.array(rows, dtype=np.float32)


def test_unit_vectors_pass_unchanged() -> None:
    vectors = _rows((1, 0), (0.6, -0.8))
    assert checked(vectors, _IDENTITY) is vectors


def test_no_vectors_pass() -> None:
    assert checked(np.zeros((0, 2), dtype=np.float32), _IDENTITY).shape == (0, 2)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (_rows((1, 0), (np.nan, 0)), "NaN"),
        (_rows((np.inf, 0)), "infinity"),
        (_rows((0, 0)), "zero"),
        (_rows((1, 1)), "length"),
        (_rows((1, 0)).astype(np.float64), "float64"),
        (_rows((1, 0))[:, :1], "shape"),
        (_rows((1, 0))[0], "shape"),
    ],
)
def test_unusable_vectors_are_refused_by_name(vectors: NDArray[np.float32], said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        checked(vectors, _IDENTITY)
    assert "'tiny' (tiny/1)" in str(caught.value)
