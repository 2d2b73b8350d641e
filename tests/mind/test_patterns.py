"""Patterns: proposed from clusters, reviewed, written once, citing what they rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from castle.mind.consolidation import pattern_search
from castle.mind.consolidation.cycle import consolidate, should_run
from castle.mind.consolidation.patterns import (
    OCCASIONS,
    Examples,
    cluster_key,
    examples,
    overlaps,
    propose,
    review,
    write,
)
from castle.mind.mind import Mind
from castle.store.mind_episodes import episodes_by_id
from castle.store.mind_facts import facts, get_fact
from castle.store.mind_rows import sources_of
from castle.store.mind_state import expire, state_of
from castle.store.palace import Palace
from tests.conftest import TurnedClock
from tests.mind.episodes import Scripted, chatter, file_all

TIMEOUT = "The deploy script timed out again on the staging server"
GOOD = {"is_pattern": True, "label": "Deploys to staging time out", "confidence": 0.9}
BAD = {"is_pattern": False, "label": "", "confidence": 0.1}


def ids_of(palace: Palace, count: int = 3, first: int = 0, text: str = TIMEOUT) -> list[str]:
    found = []
    for number in range(first, first + count):
        found += file_all(palace, [f"{text} {number}"], f"{text[:9]} {number}")
    return found


def proposed(palace: Palace, ids: list[str]) -> list[Any]:
    with palace.ledger.read() as cx:
        held = list(episodes_by_id(cx, ids).values())
        return propose(cx, held, np.ones((len(held), 2), dtype=np.float32), [range(len(held))])


def believed(palace: Palace, proposals: list[Any]) -> list[Any]:
    with palace.ledger.write() as cx:
        return write(cx, proposals, actor="test", now=palace.ledger.clock())


def test_clusters_are_the_same_when_they_share_most() -> None:
    assert cluster_key(["b", "a"]) == cluster_key(["a", "b"]) != cluster_key(["a"])
    assert overlaps("abc", "abcd") and overlaps("abc", "abcdefgh")
    assert not overlaps("abc", "cde") and not overlaps("abc", "xyz")


def test_a_pattern_cites_its_episodes_and_is_written_once(palace: Palace) -> None:
    ids = ids_of(palace)
    (made,) = believed(palace, proposed(palace, ids))
    with palace.ledger.read() as cx:
        fact = get_fact(cx, made.fact)
        assert {source.id for source in sources_of(cx, "fact", fact.id)} == set(ids)
    assert (fact.origin, fact.confidence, fact.wing, fact.unsupported) == ("pattern", 0.35, "w", False)
    assert fact.statement.startswith(f"Recurring: {TIMEOUT}")
    assert fact.metadata["detection_method"] == "dbscan" and fact.metadata["episode_count"] == 3
    (again,) = believed(palace, proposed(palace, ids))
    assert (again.decision, again.fact) == ("known", fact.id)
    (grown,) = believed(palace, proposed(palace, [*ids, *ids_of(palace, 4, 3)]))
    assert (grown.decision, grown.fact) == ("again", fact.id)
    with palace.ledger.read() as cx:
        assert get_fact(cx, fact.id).confidence == pytest.approx(0.40)
        assert len(facts(cx)) == 1 and len(sources_of(cx, "fact", fact.id)) == 7


def test_what_is_near_to_a_pattern_is_that_pattern_though_no_episode_is_shared(palace: Palace) -> None:
    (made,) = believed(palace, proposed(palace, ids_of(palace)))
    later = ids_of(palace, 3, 3)
    with palace.ledger.read() as cx:
        held = list(episodes_by_id(cx, later).values())
        vectors = np.array([[0.8, 0.6]] * 3, dtype=np.float32)
        earlier = Examples([made.fact], np.array([[1, 0]], dtype=np.float32), 0.7)
        found = [
            propose(cx, held, vectors, [range(3)], one)[0].decision
            for one in (earlier, replace(earlier, least=0.9), None)
        ]
        whole = examples(palace, cx, "w", 0.7)
    assert found == ["again", "new", "new"]
    assert whole is None or list(whole.facts) == [made.fact]


def test_the_same_evidence_over_and_over_never_makes_a_pattern_certain(palace: Palace) -> None:
    ids = ids_of(palace)
    believed(palace, proposed(palace, ids))
    for number in range(3, 15):
        ids += ids_of(palace, 1, number)
        believed(palace, proposed(palace, ids))
    with palace.ledger.read() as cx:
        assert facts(cx)[0].confidence == pytest.approx(0.7)


def test_one_occasion_or_empty_words_are_no_pattern(palace: Palace) -> None:
    assert OCCASIONS == 2
    (one,) = proposed(palace, file_all(palace, [f"{TIMEOUT} {n}" for n in range(4)], "same"))
    (dull,) = proposed(palace, ids_of(palace, text="ok, go on"))
    (polite,) = proposed(palace, ids_of(palace, text="Thanks for the wonderful support with everything"))
    assert {one.decision, dull.decision, polite.decision} == {"rejected"}
    assert "occasion" in one.reason and "little" in dull.reason and "courtesy" in polite.reason
    believed(palace, [one, dull, polite])
    with palace.ledger.read() as cx:
        assert facts(cx) == []


def test_a_model_reviews_before_anything_is_written(palace: Palace) -> None:
    provider = Scripted(GOOD, BAD)
    first, second = ids_of(palace), ids_of(palace, text="The invoice of the hosting company came late")
    texts = dict.fromkeys([*first, *second], TIMEOUT)
    proposals = [*proposed(palace, first), *proposed(palace, second)]
    reviewed, notes = review(proposals, texts, provider)
    with palace.ledger.read() as cx:
        assert facts(cx) == [] and notes == []
    made, dropped = believed(palace, reviewed)
    assert dropped.decision == "rejected"
    with palace.ledger.read() as cx:
        (fact,) = facts(cx)
    assert (fact.statement, fact.confidence) == ("Deploys to staging time out", 0.7)
    assert fact.metadata["reviewed_by"] == "model" and made.fact == fact.id
    # What a model turned down is not asked about again, also when it has grown.
    (before,) = proposed(palace, [*second, *ids_of(palace, 1, 9)])
    assert before.decision == "rejected" and before.method == "before"
    assert TIMEOUT in provider.asked[0]


def test_where_the_model_fails_the_rule_stands(palace: Palace) -> None:
    proposals = proposed(palace, ids_of(palace))
    reviewed, notes = review(proposals, {}, Scripted("no", "no"))
    assert [one.decision for one in reviewed] == ["new"] and "by rule" in notes[0]


def test_a_pattern_that_was_given_up_stays_so(palace: Palace) -> None:
    ids = ids_of(palace)
    (made,) = believed(palace, proposed(palace, ids))
    with palace.ledger.write() as cx:
        expire(cx, "fact", made.fact, reason="no", actor="test", now=1)
    (grown,) = believed(palace, proposed(palace, [*ids, *ids_of(palace, 2, 3)]))
    assert grown.decision == "known"
    with palace.ledger.read() as cx:
        assert facts(cx) == [] and state_of(cx, "fact", made.fact)[1] == 1


@pytest.mark.extras
def test_cycles_find_patterns_among_new_episodes_and_their_families(
    palace: Palace, mind: Mind, clock: TurnedClock
) -> None:
    pytest.importorskip("sklearn")
    file_all(palace, chatter(60), "noise")
    ids = ids_of(palace, 4)
    mind.save(f"{TIMEOUT} 0", "semantic", {"confidence": 0.5})  # a statement is no episode
    first = consolidate(palace, actor="test")
    (shown,) = [one for one in first["patterns"] if one["decision"] == "new"]
    assert set(shown["episodes"]) == set(ids)
    assert first["patterns_detected"] == 1 and first["waiting"] == 0
    clock.now += 301_000_000
    file_all(palace, chatter(3, 7), "more noise")
    assert consolidate(palace, actor="test")["patterns"] == []
    clock.now += 301_000_000
    fresh = ids_of(palace, 1, 4)
    (again,) = consolidate(palace, actor="test")["patterns"]
    assert again["decision"] == "again" and set(again["episodes"]) == {*ids, *fresh}


def test_a_cycle_looks_at_no_more_than_it_can_and_goes_on(
    palace: Palace, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_search, "available", lambda: True)
    monkeypatch.setattr(pattern_search, "clusters", lambda vectors, least, closer=3: [])
    monkeypatch.setattr(pattern_search, "MOST_NEW", 8)
    file_all(palace, chatter(20), "s")
    assert consolidate(palace, actor="test")["waiting"] == 12
    waiting = []
    for left in (12, 4, 0):
        assert not should_run(palace)
        clock.now += 301_000_000
        assert should_run(palace) == bool(left)
        waiting.append(consolidate(palace, actor="test")["waiting"])
    assert waiting == [4, 0, 0]


@pytest.mark.extras
def test_wings_are_searched_each_by_itself(palace: Palace) -> None:
    pytest.importorskip("sklearn")
    file_all(palace, chatter(60), "noise")
    for number in range(4):
        wing = "mine" if number < 2 else "yours"
        file_all(palace, [f"{TIMEOUT} {number}"], f"t {number}", wing=wing)
    found = consolidate(palace, actor="test")["patterns"]
    assert {one["wing"] for one in found} <= {"w"}


@pytest.mark.parametrize("label", ["Recurring: ", "Recurring: —", "—", " "])
def test_a_pattern_without_a_word_is_not_believed(palace: Palace, label: str) -> None:
    found = proposed(palace, ids_of(palace))
    if label.startswith("R"):
        (empty,) = believed(palace, [replace(found[0], statement=label)])
        assert (empty.decision, empty.reason) == ("rejected", "it says nothing")
    model = Scripted({"is_pattern": True, "label": label, "confidence": 0.9})
    (made,), _ = review(found, dict.fromkeys(found[0].members, TIMEOUT), model)
    (written,) = believed(palace, [made])
    with palace.ledger.read() as cx:
        held = [fact.statement for fact in facts(cx)]
    assert (written.decision, held) == ("rejected", [])
