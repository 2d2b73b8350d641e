"""Ways of doing something: what calls them to mind, and what outcomes do to them."""

from __future__ import annotations

import pytest

from castle.errors import UsageError
from castle.mind.mind import Mind
from castle.store.mind_procedures import change_weight, get_procedure
from castle.store.palace import Palace
from tests.mind.conftest import Save


def test_outcomes_multiply_the_weight_within_its_bounds(mind: Mind, save: Save) -> None:
    id_ = save("Check the middleware", "procedural").id
    weights = [float(str(mind.record_outcome(id_, True).metadata["activation_weight"])) for _ in range(15)]
    assert weights[0] == pytest.approx(0.525)
    assert [mind.get(id_)[0].lifecycle, weights[-1]] == ["locked", 1.0]
    assert sum(weight < 0.7 for weight in weights) == 6
    down = [mind.record_outcome(id_, False).metadata["activation_weight"] for _ in range(15)]
    assert down[-1] == pytest.approx(0.1)
    found = mind.get(id_)[0].metadata
    assert (found["success_count"], found["failure_count"]) == (15, 15)
    assert found["estimate"] == 0.5
    assert found["lower_bound"] == pytest.approx(0.3315, abs=1e-3)


def test_words_call_it_to_mind_while_there_is_no_embedder(mind: Mind, palace: Palace, save: Save) -> None:
    id_ = save("Restart the proxy", "procedural", trigger_condition="gateway timeout").id
    save("Paint the hull", "procedural", trigger_condition="spring")
    palace.unready = "words only"
    (found,) = mind.match_procedures('a "timeout": (gateway) - OR AND?')
    assert (found.template.id, found.similarity) == (id_, None)
    assert set(found.matched) == {"timeout", "gateway"}
    assert mind.match_procedures("nothing of the kind") == []


def test_meaning_calls_it_to_mind_above_the_threshold_only(mind: Mind, save: Save) -> None:
    id_ = save("Restart the proxy", "procedural", trigger_condition="gateway timeout").id
    (found,) = mind.match_procedures("gateway timeout")
    assert found.template.id == id_
    assert found.similarity == pytest.approx(1.0, abs=1e-3)
    by_word = mind.match_procedures("timeout of the long slow and far away kitchen clock", threshold=0.99)
    assert [one.similarity for one in by_word] == [None]


def test_to_explore_puts_another_match_first_and_is_repeatable(
    mind: Mind, palace: Palace, save: Save
) -> None:
    ids = [save(f"way {n}", "procedural", trigger_condition="gateway timeout").id for n in range(3)]
    best = mind.match_procedures("gateway timeout", explore_ratio=0.0)
    assert not any(one.explore for one in best)
    order = [one.template.id for one in best]
    picks = [mind.match_procedures("gateway timeout", explore_ratio=0.2, seed=n) for n in range(200)]
    first = [found[0] for found in picks]
    assert 20 <= sum(one.explore for one in first) <= 60
    assert all(found[1].template.id == order[0] for found in picks if found[0].explore)
    assert all(found[0].template.id == order[0] for found in picks if not found[0].explore)
    again = mind.match_procedures("gateway timeout", explore_ratio=0.2, seed=7)
    assert [one.template.id for one in again] == [one.template.id for one in picks[7]]
    assert set(order) == set(ids)


def test_one_at_the_floor_is_a_candidate_of_exploring_only(mind: Mind, palace: Palace, save: Save) -> None:
    good = save("good way", "procedural", trigger_condition="gateway timeout").id
    floored = save("bad way", "procedural", trigger_condition="gateway timeout").id
    with palace.ledger.write() as cx:
        change_weight(cx, floored, 0.0, reason="a test", actor="a", now=1)
        assert get_procedure(cx, floored).weight == 0.1
    assert [one.template.id for one in mind.match_procedures("gateway timeout", explore_ratio=0)] == [good]
    found = mind.match_procedures("gateway timeout", explore_ratio=1.0, seed=1)
    assert [(one.template.id, one.explore) for one in found] == [(floored, True), (good, False)]


def test_variants_are_compared_by_what_is_sure(mind: Mind, save: Save) -> None:
    first = save("way one", "procedural").id
    second = save("way two", "procedural", variant_of=first).id
    mind.record_outcome(first, False)
    mind.record_outcome(second, True)
    assert mind.better_variants(first) == []
    for _ in range(12):
        mind.record_outcome(first, False)
        mind.record_outcome(second, True)
    (better,) = mind.better_variants(second)
    assert (better.best.id, better.other.id) == (second, first)


def test_only_procedures_have_outcomes(mind: Mind, save: Save) -> None:
    with pytest.raises(UsageError, match="only procedures"):
        mind.record_outcome(save("a note").id, True)


def test_recall_never_explores(mind: Mind, save: Save) -> None:
    for n in range(3):
        save(f"way {n}", "procedural", trigger_condition="gateway timeout")
    seen = {tuple(m.id for m in mind.recall("gateway timeout").memories) for _ in range(10)}
    assert len(seen) == 1
