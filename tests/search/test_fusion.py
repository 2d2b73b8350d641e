from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.search.candidates import Candidate
from castle.search.fusion import (
    EVIDENCE,
    STEEPNESS,
    calibrated_scores,
    favoured,
    reciprocal_ranks,
    with_signals,
)


def ranked(*pairs: tuple[str, float]) -> list[Candidate]:
    return [Candidate(id_, f"sha-{id_}", score, matched=(id_.upper(),)) for id_, score in pairs]


def test_reciprocal_ranks_by_hand() -> None:
    lists = {"dense": ranked(("a", 0.9), ("b", 0.8)), "lexical": ranked(("b", 7.0), ("c", 3.0))}
    fused = reciprocal_ranks(lists, {"dense": 1.0, "lexical": 1.0}, k=60)
    assert [(c.id, round(c.score, 6)) for c in fused] == [
        ("b", round(1 / 62 + 1 / 61, 6)),
        ("a", round(1 / 61, 6)),
        ("c", round(1 / 62, 6)),
    ]


def test_a_list_without_weight_counts_nothing_and_ties_go_by_id() -> None:
    lists = {"dense": ranked(("b", 0.9), ("a", 0.8)), "graph": ranked(("c", 1.0), ("d", 1.0))}
    fused = reciprocal_ranks(lists, {"dense": 0.0})
    assert [(c.id, c.score) for c in fused] == [("a", 0.0), ("b", 0.0), ("c", 0.0), ("d", 0.0)]


def test_calibrated_scores_by_hand() -> None:
    lists = {
        "dense": ranked(("a", 0.9), ("b", 0.5), ("c", 0.1)),
        "lexical": ranked(("b", 8.0), ("c", 4.0)),
    }
    fused = calibrated_scores(lists, {"dense": 1.0, "lexical": 1.5})
    assert STEEPNESS["lexical"] == 2.0
    assert [c.id for c in fused] == ["b", "a", "c"]
    assert [c.score for c in fused] == pytest.approx([0.5 / 4 + 3 / 4, 1 / 4, 0.0])
    assert fused[0].stages["dense"].rank == 2
    assert fused[0].stages["lexical"].score == 8.0


def test_one_list_alone_keeps_its_order_and_its_best_is_one() -> None:
    fused = calibrated_scores({"dense": [], "lexical": ranked(("x", 3.0), ("y", 1.0))}, {"lexical": 1.0})
    assert [(c.id, c.score) for c in fused] == [("x", 1.0), ("y", 0.0)]


def test_equal_scores_all_count_in_full() -> None:
    fused = calibrated_scores({"dense": ranked(("a", 0.2), ("b", 0.2))}, {"dense": 1.0})
    assert [c.score for c in fused] == [1.0, 1.0]


def test_what_the_graph_brings_counts_by_its_share_and_is_marked() -> None:
    named = [replace(c, entity_match=True) for c in ranked(("a", 0.25), ("b", 0.25))]
    fused = calibrated_scores({"dense": ranked(("c", 0.9)), "graph": named}, {"dense": 1.0, "graph": 0.5})
    assert [(c.id, c.entity_match) for c in fused] == [("c", False), ("a", True), ("b", True)]
    assert [c.score for c in fused] == pytest.approx([1 / 1.5, 0.25 * 0.5 / 1.5, 0.25 * 0.5 / 1.5])


def test_signals_by_hand() -> None:
    fused = ranked(("a", 0.8), ("b", 0.6), ("c", 0.0))
    signals = {"names": {"b": 1.0}, "times": {"b": 0.5, "c": 1.0}, "phrases": {}}
    found = with_signals(fused, signals, {"names": 0.3, "times": 0.2, "phrases": 9.0})
    assert [c.id for c in found] == ["b", "a", "c"]
    assert [c.score for c in found] == pytest.approx([(0.75 + 0.3 + 0.1) / 1.5, 1 / 1.5, 0.2 / 1.5])
    assert (found[0].stages["times"].rank, found[0].stages["times"].score) == (2, 0.5)


def test_signals_are_evidence_on_relevances() -> None:
    read = ranked(("a", 0.8), ("b", 0.5), ("c", 0.0))
    found = favoured(read, {"times": {"b": 1.0}}, {"times": 0.5})
    against = math.exp(-EVIDENCE * 0.5)
    assert {c.id: c.score for c in found} == pytest.approx(
        {"a": 4 * against / (1 + 4 * against), "b": 0.5, "c": 0.0}
    )
    assert [c.id for c in found] == ["b", "a", "c"]
    assert favoured(read, {}, {"times": 0.5}) == read


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0, 1000))
def test_evidence_keeps_relevances_between_nothing_and_themselves(scores: list[float], weight: float) -> None:
    read = ranked(*((f"{n}", score) for n, score in enumerate(scores)))
    before = {c.id: c.score for c in read}
    for candidate in favoured(read, {"times": {"0": 1.0, "1": 0.5}}, {"times": weight}):
        assert 0.0 <= candidate.score <= before[candidate.id] + 1e-9


def test_signals_without_weight_change_nothing() -> None:
    fused = ranked(("a", 0.8), ("b", 0.6))
    assert with_signals(fused, {"names": {"b": 1.0}}, {"names": 0.0}) == fused
    assert with_signals(fused, {}, {"names": 1.0}) == fused
    assert with_signals([], {"names": {"b": 1.0}}, {"names": 1.0}) == []


members = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.floats(-1, 50)), max_size=8, unique_by=lambda pair: pair[0]
)


@given(members, members)
def test_fusion_neither_loses_nor_doubles_and_is_ordered(
    one: list[tuple[str, float]], two: list[tuple[str, float]]
) -> None:
    lists = {"dense": ranked(*one), "lexical": ranked(*two)}
    weights = {"dense": 1.0, "lexical": 1.0}
    for fused in (reciprocal_ranks(lists, weights), calibrated_scores(lists, weights)):
        assert {c.id for c in fused} == {id_ for id_, _ in (*one, *two)}
        assert len({c.id for c in fused}) == len(fused)
        keys = [(-c.score, -len(c.matched), c.id) for c in fused]
        assert keys == sorted(keys)


def test_of_equals_the_one_with_the_words_comes_first() -> None:
    by_words = [Candidate("z", "sha-z", 3.0, matched=("harbour",))]
    by_meaning = [Candidate("a", "sha-a", 0.4)]
    lists = {"dense": by_meaning, "lexical": by_words}
    fused = calibrated_scores(lists, {"dense": 2.0, "lexical": 1.0})
    assert [(c.id, c.score) for c in fused] == [("z", 0.5), ("a", 0.5)]
