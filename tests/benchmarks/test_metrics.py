"""The measures, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.retrieval.metrics import (
    Judged,
    auroc,
    estimate,
    judged,
    measures,
    ndcg,
    recall_all,
    recall_any,
    reciprocal_rank,
)

FOUND = ("a", "x", "b", "y", "a", "c")


def test_a_name_counts_where_it_came_first() -> None:
    assert judged(FOUND, frozenset({"a", "c", "z"})) == Judged((1, 6), 3)


def test_recall_of_any_and_of_all() -> None:
    item = judged(FOUND, frozenset({"b", "c"}))
    assert [recall_any(item, k) for k in (1, 3, 6)] == [0, 1, 1]
    assert [recall_all(item, k) for k in (3, 5, 6)] == [0, 0, 1]
    assert reciprocal_rank(item, 10) == 1 / 3
    assert reciprocal_rank(item, 2) == 0


def test_the_ideal_has_every_gold_item_found_or_not() -> None:
    missed = judged(FOUND, frozenset({"a", "z"}))
    assert ndcg(missed, 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    many = judged(("a",), frozenset("abcdefghijklm"))
    assert ndcg(many, 1) == 1
    assert ndcg(judged((), frozenset("a")), 10) == 0


def test_only_depths_that_were_asked_for_are_measured() -> None:
    assert set(measures(5)) == {
        "R@1", "recall_any@1", "recall_all@1", "recall_any@3", "recall_all@3", "recall_any@5",
        "recall_all@5", "NDCG@5", "MRR@5",
    }  # fmt: skip
    assert measures(10)["recall_any@3"](Judged((4,), 1)) == 0
    assert measures(10)["recall_any@5"](Judged((4,), 1)) == 1


def test_the_interval_holds_the_mean_and_is_the_same_again() -> None:
    found = estimate([1.0] * 80 + [0.0] * 20)
    assert found.mean == 0.8
    assert 0.70 < found.low < 0.78 < 0.82 < found.high < 0.90
    assert estimate([1.0] * 80 + [0.0] * 20) == found
    assert math.isnan(estimate([]).mean)


def test_auroc_counts_ties_half() -> None:
    assert auroc([3, 2], [1, 0]) == 1
    assert auroc([1], [1]) == 0.5
    assert auroc([0, 2], [1]) == 0.5
    assert math.isnan(auroc([], [1]))
