"""What is believed: one confidence, changed by one function, with reason and history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.errors import NotFoundError, UsageError
from castle.mind.mind import Mind
from castle.store.mind_facts import LOCKED_PAUSE, add_fact, change_confidence, get_fact, reinforce
from castle.store.mind_rows import history, norm_hash
from castle.store.mind_values import Source, lifecycle
from castle.store.palace import Palace
from tests.mind.conftest import Save

NOW = 1_800_000_000_000_000


def believe(palace: Palace, confidence: float, text: str = "The tide turns") -> str:
    with palace.ledger.write() as cx:
        return add_fact(cx, text, confidence=confidence, origin="user", actor="a", now=NOW).id


def weaken(palace: Palace, id_: str, delta: float, now: int = NOW) -> float:
    with palace.ledger.write() as cx:
        return change_confidence(cx, id_, delta, reason="a test", actor="b", now=now, evidence=["d1"])


@pytest.mark.parametrize(
    ("confidence", "stage"),
    [(0.0, "plastic"), (0.499, "plastic"), (0.5, "semi_stable"), (0.799, "semi_stable"), (0.8, "locked")],
)
def test_the_stage_is_a_function_of_the_confidence(confidence: float, stage: str) -> None:
    assert lifecycle(confidence) == stage


@pytest.mark.parametrize(("before", "after"), [(0.4, 0.3), (0.6, 0.55), (0.9, 0.875)])
def test_what_is_believed_firmly_is_weakened_less(palace: Palace, before: float, after: float) -> None:
    assert weaken(palace, believe(palace, before), -0.1) == pytest.approx(after)


def test_a_locked_fact_takes_one_step_down_a_day(palace: Palace) -> None:
    id_ = believe(palace, 0.95)
    first = weaken(palace, id_, -0.1)
    assert weaken(palace, id_, -0.1, NOW + LOCKED_PAUSE - 1) == first
    assert weaken(palace, id_, -0.1, NOW + LOCKED_PAUSE + 1) == pytest.approx(first - 0.025)


@given(st.floats(0, 1), st.floats(-5, 5, allow_nan=False))
def test_the_stage_of_any_confidence_is_one(confidence: float, delta: float) -> None:
    assert lifecycle(min(max(confidence + delta, 0), 1)) in ("plastic", "semi_stable", "locked")


def test_confidence_is_bounded_and_changes_for_a_reason(palace: Palace) -> None:
    id_ = believe(palace, 0.4)
    assert weaken(palace, id_, 9.0) == 1.0
    with palace.ledger.write() as cx, pytest.raises(UsageError, match="reason"):
        change_confidence(cx, id_, -0.1, reason=" ", actor="b", now=NOW)
    with palace.ledger.read() as cx:
        last = history(cx, "fact", id_)[-1]
    assert (last.old, last.new, last.reason, last.actor, last.evidence) == (
        "0.4",
        "1",
        "a test",
        "b",
        ("d1",),
    )


def test_the_same_words_are_one_fact_and_the_same_source_says_nothing_new(mind: Mind, save: Save) -> None:
    first = save("The tide turns at six.", "semantic", confidence=0.4)
    again = save("the  tide turns at six", "semantic", confidence=0.4)
    assert again.id == first.id
    assert again.confidence == pytest.approx(0.45)
    third = save("the  tide turns at six", "semantic", confidence=0.4)
    assert third.confidence == again.confidence
    other_session = save("The tide turns at six.", "semantic", confidence=0.4, session_id="s2")
    assert other_session.confidence == pytest.approx(0.5)
    assert save("The tide turns at six.", "semantic", session_id="s2").confidence == pytest.approx(0.5)
    assert mind.status()["layers"]["semantic"]["entry_count"] == 1
    assert save("The tide turns at six.", "semantic", wing="elsewhere").id != first.id


def test_what_says_as_much_in_other_order_is_a_witness_once_the_embedder_is_there(
    mind: Mind, palace: Palace, save: Save
) -> None:
    first = save("boats need paint in spring", "semantic", confidence=0.4)
    assert palace.embedder
    mind.recall("paint")
    near = mind.save("in spring boats need paint", "semantic", {"confidence": 0.4})
    assert (near.memory.id, near.reinforced) == (first.id, True)
    assert len(near.memory.drawer_ids) == 2
    assert [memory.id for memory in mind.recall("boats paint spring").memories] == [first.id]


def test_drawers_of_one_session_are_one_witness(palace: Palace) -> None:
    id_ = believe(palace, 0.4)
    with palace.ledger.write() as cx:
        one = [Source("drawer", f"d{n}", session="s") for n in range(5)]
        assert reinforce(cx, id_, one, reason="seen", actor="c", now=NOW) == pytest.approx(0.45)
        more = [Source("drawer", "d9", session="s")]
        assert reinforce(cx, id_, more, reason="seen", actor="c", now=NOW) == pytest.approx(0.45)
        against = [Source("drawer", "x", role="contradicts")]
        assert reinforce(cx, id_, against, reason="seen", actor="c", now=NOW) == pytest.approx(0.45)


def test_an_insight_is_never_more_than_likely(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        id_ = add_fact(cx, "All is one", confidence=0.9, origin="insight", actor="a", now=NOW).id
        assert get_fact(cx, id_).confidence == 0.75
        assert change_confidence(cx, id_, 0.2, reason="liked", actor="a", now=NOW) == 0.75


def test_a_condition_is_checked_when_it_is_saved(mind: Mind, save: Save) -> None:
    with pytest.raises(UsageError):
        save("Node is old", "semantic", falsifiable_condition={"field": "node", "operator": "sings"})
    assert mind.status()["layers"]["semantic"]["entry_count"] == 0
    with pytest.raises(NotFoundError):
        save("Node is old", "semantic", source_references=["nothing"])


def test_sources_are_resolved(save: Save) -> None:
    episode = save("We measured the depth: nine fathoms")
    fact = save("The bay is nine fathoms deep", "semantic", source_references=[episode.id[:8]])
    assert fact.source_references == (episode.id,)
    assert fact.drawer_ids[1:] == (episode.id,)


def test_a_text_is_the_same_whatever_its_case_and_blanks() -> None:
    assert norm_hash("  The Tide\nturns. ") == norm_hash("the tide turns")
    assert norm_hash("the tide turns") != norm_hash("the tide turned")
