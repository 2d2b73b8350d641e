"""Stage 3: candidates in the order of relevance, none of them lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from castle.errors import ModelError
from castle.models.rerankers import FakeCrossEncoder
from castle.records import StageScore
from castle.search.candidates import Candidate, ranked
from castle.search.fusion import probability
from castle.search.rerank import STAGE, confident, rerank


class Given:
    """An encoder whose scores are the texts."""

    identity = "given"
    confident = 0.3
    blend = 0.0
    reason = ""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([float(text) for text in texts], dtype=np.float32)


def _fused(*scores: float) -> list[Candidate]:
    named = [Candidate(f"d{number}", f"{number:064x}", score) for number, score in enumerate(scores)]
    return ranked(named, "fusion")


def test_the_most_relevant_comes_first_and_its_score_is_the_relevance() -> None:
    candidates = _fused(1.0, 0.8, 0.5)
    texts = {"d0": "0.25", "d1": "0.5", "d2": "0.75"}
    found = rerank("q", candidates, texts, Given(), 3)
    assert [(c.id, c.score) for c in found] == [("d2", 0.75), ("d1", 0.5), ("d0", 0.25)]
    assert found[0].stages == {"fusion": StageScore(3, 0.5), STAGE: StageScore(1, 0.75)}
    assert found[0] == replace(candidates[2], score=0.75, stages=found[0].stages)


def test_what_lies_beyond_k_follows_in_its_order_with_lower_scores() -> None:
    candidates = _fused(1.0, 0.8, 0.5, 0.4, 0.1)
    found = rerank("q", candidates, {"d0": "0.5", "d1": "0.75"}, Given(), 2)
    assert [c.id for c in found] == ["d1", "d0", "d2", "d3", "d4"]
    assert [c.score for c in found] == pytest.approx([0.75, 0.5, 0.5, 0.4, 0.1])
    assert all(STAGE not in c.stages for c in found[2:])


def test_equal_relevance_keeps_the_fused_order() -> None:
    candidates = _fused(0.9, 0.5, 0.1)
    texts = dict.fromkeys(("d0", "d1", "d2"), "0.5")
    assert [c.id for c in rerank("q", candidates, texts, Given(), 3)] == ["d0", "d1", "d2"]


def test_blending_lowers_what_fusion_found_less_likely() -> None:
    candidates = _fused(1.0, 0.5)
    texts = {"d0": "0.5", "d1": "0.6"}
    assert [c.id for c in rerank("q", candidates, texts, Given(), 2)] == ["d1", "d0"]
    blended = rerank("q", candidates, texts, Given(), 2, blend=1.0)
    assert [c.id for c in blended] == ["d0", "d1"]
    assert blended[0].score == pytest.approx(0.5)
    assert blended[1].score < 0.6


class Beside(Given):
    """An encoder that, beside the others, prefers what it scores least."""

    def compare(self, query: str, groups: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        return np.array([-10.0 * float(text) for (text,) in groups])


def test_what_was_read_can_be_told_apart_among_itself() -> None:
    candidates = _fused(1.0, 0.9, 0.8)
    texts = {"d0": "0.5", "d1": "0.25", "d2": "0.0"}
    found = rerank("q", candidates, texts, Beside(), 3, compared=True)
    assert [c.id for c in found] == ["d1", "d0", "d2"]
    # The best relevance is that of what comes first; the odds of what had none are nobody's.
    assert [c.score for c in found] == pytest.approx([0.5, probability(-2.5), 0.0])
    nothing = dict.fromkeys(texts, "0.0")
    assert [c.score for c in rerank("q", candidates, nothing, Beside(), 3, compared=True)] == [0.0] * 3
    assert [c.id for c in rerank("q", candidates, texts, Beside(), 3)] == ["d0", "d1", "d2"]
    assert rerank("q", candidates, texts, Given(), 3, compared=True) == rerank(
        "q", candidates, texts, Given(), 3
    )


def test_an_encoder_that_fails_or_lies_is_an_error() -> None:
    candidates = _fused(1.0, 0.5)
    with pytest.raises(ModelError):
        rerank("q", candidates, {"d0": "0.5", "d1": "1.5"}, Given(), 2)
    with pytest.raises(ModelError):
        rerank("q", candidates, {"d0": "0.5", "d1": "-0.5"}, Given(), 2)


def test_nothing_to_rank() -> None:
    assert rerank("q", [], {}, Given(), 20) == []
    assert rerank("q", _fused(0.5), {}, Given(), 0) == _fused(0.5)
    assert not confident([], Given())


def test_no_score_reaches_the_threshold() -> None:
    candidates = _fused(1.0, 0.5)
    assert confident(rerank("q", candidates, {"d0": "0.1", "d1": "0.4"}, Given(), 2), Given())
    assert not confident(rerank("q", candidates, {"d0": "0.1", "d1": "0.2"}, Given(), 2), Given())
    assert confident(candidates, FakeCrossEncoder())


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1, width=32)), max_size=12),
    st.integers(0, 15),
    st.floats(0, 3),
)
def test_none_is_lost_and_scores_stay_in_bounds(
    pairs: list[tuple[float, float]], k: int, blend: float
) -> None:
    candidates = _fused(*sorted((fused for fused, _ in pairs), reverse=True))
    texts = {f"d{number}": repr(relevance) for number, (_, relevance) in enumerate(pairs)}
    found = rerank("q", candidates, texts, Given(), k, blend)
    assert sorted(c.id for c in found) == sorted(c.id for c in candidates)
    assert [c.id for c in found[k:]] == [c.id for c in candidates[k:]]
    if k:
        scores = [c.score for c in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
