from __future__ import annotations

import numpy as np
import pytest

from castle.novelty.compare import Comparison, novelty_of
from castle.store.novelty import Known, Score


def known(*drawers: tuple[int, float, float], hidden: bool = False, copies: int | None = None) -> Known:
    """Return drawers by rid, the angle of their vector in degrees, and their score."""
    angles = np.radians([angle for _, angle, _ in drawers])
    return Known(
        rids=np.array([rid for rid, _, _ in drawers], dtype=np.int64),
        hidden=np.full(len(drawers), hidden),
        copies=np.array([rid if copies is None else copies for rid, _, _ in drawers], dtype=np.int64),
        units=np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32),
        scores=np.array([score for _, _, score in drawers]),
    )


NAN = float("nan")


def test_by_hand() -> None:
    comparison = Comparison(known((2, 60, NAN), (3, 0, NAN), (9, 180, NAN)))
    assert comparison.show(known((1, 0, 1.0), (2, 60, NAN), (3, 0, NAN))) == []
    assert comparison.finish() == [Score(2, 0.5, 1), Score(3, 0.0, 1), Score(9, 1.0, 2)]


def test_of_equally_near_ones_the_first_counts_and_nobody_precedes_himself() -> None:
    comparison = Comparison(known((5, 0, NAN)))
    comparison.show(known((2, 90, 1.0), (3, 90, 0.0), (5, 0, NAN), (6, 0, NAN)))
    assert comparison.finish() == [Score(5, 1.0, 2)]


def test_later_ones_that_have_a_score_are_corrected_downwards_only() -> None:
    comparison = Comparison(known((4, 0, NAN), (5, 90, NAN)))
    block = known((1, 0, 1.0), (6, 60, 0.9), (7, 60, 0.1), (8, 60, NAN))
    assert comparison.concerns(block)
    assert comparison.show(block) == [Score(6, 0.133975, 5)]
    assert block.scores[1] == 0.133975
    assert not Comparison(known((4, 0, NAN))).concerns(known((5, 0, NAN)))


@pytest.mark.parametrize(
    ("batch", "block", "nearest"), [(False, True, None), (True, True, 1), (True, False, 1)]
)
def test_hidden_ones_precede_hidden_ones_only(batch: bool, block: bool, nearest: int | None) -> None:
    comparison = Comparison(known((2, 0, NAN), hidden=batch))
    comparison.show(known((1, 0, 1.0), hidden=block))
    assert comparison.finish()[0].nearest == nearest
    assert bool(Comparison(known((1, 0, NAN), hidden=block)).show(known((2, 0, 1.0), hidden=batch))) == bool(
        nearest
    )


def test_equal_texts_are_one_whatever_their_vectors() -> None:
    comparison = Comparison(known((2, 60, NAN), copies=7))
    comparison.show(known((1, 0, 1.0), copies=7))
    assert comparison.finish() == [Score(2, 0.0, 1)]


@pytest.mark.parametrize(("cosine", "novelty"), [(1.0000001, 0.0), (0.25, 0.75), (-0.5, 1.0)])
def test_novelty_is_limited(cosine: float, novelty: float) -> None:
    assert novelty_of(cosine) == novelty
