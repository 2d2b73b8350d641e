"""The life of a hypothesis, which needs no language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from castle.errors import NotFoundError, PalaceBusyError, RefusedError, UsageError
from castle.mind.replay import pool
from castle.mind.replay.pool import creative_pool, hypothesis_feedback, push_to_working, tidy
from castle.store.mind_facts import add_fact, get_fact
from castle.store.mind_hypotheses import Hypothesis, add_hypothesis, change, get_hypothesis, seen_again
from castle.store.mind_index import embed_missing
from castle.store.mind_rows import history, sources_of
from castle.store.mind_values import Source
from castle.store.mind_working import items
from castle.store.palace import Palace


def add(palace: Palace, text: str = "Cats like warm servers", confidence: float = 0.24) -> Hypothesis:
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        seed = add_fact(cx, f"{text} one", confidence=0.5, origin="user", actor="t", now=now, wing="w")
        return add_hypothesis(
            cx, text, rationale="", confidence=confidence, wing="w", cycle=1, seeds=[seed.id], nodes=[],
            pair=[], topics=["cats"], sources=[Source("fact", seed.id)], metadata={},
            expires_at=pool.expiry(now), actor="t", now=now,
        )  # fmt: skip


def say(palace: Palace, one: Hypothesis, confirmed: bool) -> dict[str, Any]:
    return hypothesis_feedback(palace, one.id, confirmed, actor="ann")


def test_confirmed_twice_it_becomes_an_insight_that_is_not_locked(palace: Palace) -> None:
    one = add(palace)
    assert say(palace, one, True) == {
        "hypothesis_id": one.id, "action": "confirmed", "new_confidence": pytest.approx(0.54)
    }  # fmt: skip
    second = say(palace, one, True)
    assert second["action"] == "promoted" and second["new_confidence"] == pytest.approx(0.84)
    with palace.ledger.read() as cx:
        fact = get_fact(cx, second["fact_id"])
        assert {source.id for source in sources_of(cx, "fact", fact.id)} == {*one.seeds, one.id}
        changes = [(c.new, c.actor) for c in history(cx, "hypothesis", one.id) if c.what == "status"]
    assert (fact.origin, fact.confidence, fact.lifecycle) == ("insight", 0.75, "semi_stable")
    assert changes == [("pending", "t"), ("confirmed", "ann"), ("promoted", "ann")]
    assert say(palace, one, True)["action"] == "unchanged"
    assert creative_pool(palace)["count_by_status"]["promoted"] == 1


def test_a_firm_one_is_promoted_at_once(palace: Palace) -> None:
    assert say(palace, add(palace, confidence=0.3), True)["action"] == "promoted"


def test_turned_down_three_times_it_is_rejected_for_good(palace: Palace) -> None:
    one = add(palace)
    told = [say(palace, one, False) for _ in range(4)]
    assert [item["action"] for item in told] == ["ignored", "ignored", "rejected", "unchanged"]
    assert told[2]["ignore_count"] == 3
    with pytest.raises(RefusedError, match="rejected"):
        say(palace, one, True)


def test_an_insight_that_is_turned_down_ends(palace: Palace) -> None:
    one = add(palace, confidence=0.3)
    fact = say(palace, one, True)["fact_id"]
    assert say(palace, one, False)["action"] == "rejected"
    with palace.ledger.read() as cx:
        assert get_fact(cx, fact).expired


def test_what_somebody_stated_does_not_end_with_an_insight(palace: Palace) -> None:
    one = add(palace, confidence=0.3)
    with palace.ledger.write() as cx:
        own = add_fact(cx, one.text, confidence=0.5, origin="user", actor="t", now=5, wing="w")
    assert say(palace, one, True)["fact_id"] == own.id
    say(palace, one, False)
    with palace.ledger.read() as cx:
        assert not get_fact(cx, own.id).expired


def test_who_comes_late_changes_nothing(palace: Palace) -> None:
    one = add(palace)
    say(palace, one, False)
    with palace.ledger.write() as cx:
        assert not change(cx, one, reason="late", actor="t", now=1, status="confirmed")
        assert get_hypothesis(cx, one.id).status == "pending"
    with pytest.raises(PalaceBusyError):
        pool._must(False)


def test_other_ids_and_states_are_told_apart(palace: Palace) -> None:
    one = add(palace)
    with pytest.raises(UsageError, match="is a fact"):
        hypothesis_feedback(palace, one.seeds[0], True, actor="t")
    with pytest.raises(NotFoundError):
        hypothesis_feedback(palace, "hyp_0000000000000000", True, actor="t")
    with pytest.raises(UsageError, match="pending"):
        creative_pool(palace, "lost")
    assert creative_pool(palace, "rejected")["entries"] == []
    (entry,) = creative_pool(palace)["entries"]
    assert (entry["hypothesis_text"], entry["source_seed_ids"]) == (one.text, list(one.seeds))


def test_nobody_speaks_of_it_for_a_month_or_there_is_no_room(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak, strong = add(palace, "Weak one", 0.1), add(palace, "Strong one", 0.3)
    monkeypatch.setattr(pool, "MOST", 2)
    with palace.ledger.write() as cx:
        assert tidy(cx, palace.ledger.clock(), coming=1) == 1
        assert get_hypothesis(cx, weak.id).status == "expired"
        assert tidy(cx, pool.expiry(palace.ledger.clock())) == 1
        assert get_hypothesis(cx, strong.id).status == "expired"


def test_a_stable_one_comes_to_mind_faintly_and_once(palace: Palace) -> None:
    one, _ = add(palace), add(palace, "Nine pages of text")
    embed_missing(palace)
    near = palace.embedder.embed_query(one.text)
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        assert push_to_working(palace, cx, near, now=now) == []
        for cycle in (1, 2, 3):
            seen_again(cx, get_hypothesis(cx, one.id), cycle, 0.24, one.expires_at or 0)
        assert len(push_to_working(palace, cx, near, now=now)) == 1
        assert push_to_working(palace, cx, near, now=now) == []
        (item,) = items(cx)
        assert (item.base_priority, item.hypothesis) == (0.3, one.id)
        assert item.content == f"[Hypothesis] {one.text}"
        assert get_hypothesis(cx, one.id).push_count == 1


def test_the_pool_is_read_from_a_palace_that_cannot_be_written(palace: Palace, tmp_path: Path) -> None:
    add(palace)
    palace.ledger.read_only = True
    assert len(creative_pool(palace)["entries"]) == 1
