"""Preferences: who they are learned from, how they become firm, what they lead to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from castle.errors import NotFoundError, UsageError
from castle.llm.base import LlmError
from castle.llm.budget import Budget, Metered
from castle.mind.environment.checking import check_environment
from castle.mind.preferences.changes import CUE_CEILING, DAY, INITIAL
from castle.mind.preferences.learning import (
    conflicts,
    detect,
    extract,
    feedback,
    for_recall,
    for_wake_up,
    implicit_feedback,
    inject,
    preferences,
    status,
)
from castle.store.mind_facts import facts, get_fact
from castle.store.mind_preferences import (
    evidence_of,
    get_preference,
    preferences_where,
    purge_preferences,
)
from castle.store.mind_procedures import get_procedure
from castle.store.mind_rows import history
from castle.store.mind_values import Fact
from castle.store.palace import Palace
from tests.conftest import TurnedClock
from tests.mind.said import say

LIKES = "I prefer docker for local databases."
AGAIN = "Please always use docker for databases, I said."


def learn(palace: Palace, **more: Any) -> dict[str, Any]:
    return extract(palace, actor="t", **more)


def everything(palace: Palace) -> list[Any]:
    with palace.ledger.read() as cx:
        return preferences_where(cx)


def believed(palace: Palace) -> list[Fact]:
    with palace.ledger.read() as cx:
        return facts(cx)


def by_hand(palace: Palace, text: str = LIKES, **more: Any) -> str:
    found: str = inject(palace, text, actor="t", **more)["preference_id"]
    return found


def test_a_persons_message_makes_a_candidate_that_cites_it(palace: Palace) -> None:
    drawer = say(palace, LIKES)
    assert learn(palace)["candidates_created"] == 1
    (found,) = everything(palace)
    assert (found.text, found.type, found.polarity, found.status) == (LIKES, "tool_choice", 1, "pending")
    assert (found.origin, found.wing, found.confidence) == ("cue", "w", INITIAL)
    with palace.ledger.read() as cx:
        assert [item.drawer for item in evidence_of(cx, found.id)] == [drawer]
    assert believed(palace) == []


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("assistant", "message"),
        ("tool", "tool"),
        ("user", "injected"),
        ("user", "subagent"),
        ("user", "file"),
    ],
)
def test_nothing_is_learned_from_what_a_machine_wrote(palace: Palace, role: str, kind: str) -> None:
    say(palace, LIKES, role=role, kind=kind)
    assert learn(palace)["signals_found"] == 0
    assert everything(palace) == []


def test_ten_cycles_on_the_same_words_change_nothing_after_the_first(palace: Palace) -> None:
    for text in (LIKES, AGAIN, "I don't like docker for databases.", "I'm new to rust."):
        say(palace, text)
    learn(palace)
    with palace.ledger.read() as cx:
        before = [(item, evidence_of(cx, item.id)) for item in everything(palace)]
        changes = cx.exec_driver_sql("SELECT count(*) FROM mem_history").scalar()
    for _ in range(10):
        learn(palace)
        conflicts(palace)
    with palace.ledger.read() as cx:
        assert [(item, evidence_of(cx, item.id)) for item in everything(palace)] == before
        assert cx.exec_driver_sql("SELECT count(*) FROM mem_history").scalar() == changes


def test_only_new_occasions_make_it_surer_and_cues_alone_confirm_nothing(palace: Palace) -> None:
    say(palace, LIKES)
    learn(palace)
    assert everything(palace)[0].confidence == INITIAL
    for i in range(8):
        say(palace, f"{AGAIN} ({i})")
    learn(palace)
    (found,) = everything(palace)
    assert found.confidence == CUE_CEILING
    assert (found.status, found.signal_strength) == ("pending", 1.0)
    with palace.ledger.read() as cx:
        assert len(evidence_of(cx, found.id)) == 9


def test_one_drawer_speaks_once_however_often_it_is_read(palace: Palace) -> None:
    drawer = say(palace, LIKES)
    for _ in range(3):
        with palace.ledger.write() as cx:
            assert detect(palace, cx, drawer, LIKES, "user", 0.0, palace.ledger.clock()) == 1
    learn(palace)
    (found,) = everything(palace)
    assert found.confidence == INITIAL


def test_a_save_is_looked_at_when_a_person_said_it(palace: Palace) -> None:
    drawer = say(palace, "x", kind="note")
    with palace.ledger.write() as cx:
        now = palace.ledger.clock()
        assert detect(palace, cx, drawer, LIKES, "assistant", 0.0, now) == 0
        assert detect(palace, cx, drawer, "The user prefers docker over podman.", "user", 0.9, now) == 1
        found = preferences_where(cx)[0]
        assert evidence_of(cx, found.id)[0].strength == pytest.approx(0.77)


def test_a_secret_in_a_message_is_no_part_of_a_preference(palace: Palace) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    drawer = say(palace, "x", kind="note")
    with palace.ledger.write() as cx:
        detect(palace, cx, drawer, f"I prefer the token {key} for docker.", "user", 0.0, 1)
    assert all(key not in item.text for item in everything(palace))


def test_a_session_is_read_alone(palace: Palace) -> None:
    say(palace, LIKES)
    assert learn(palace, session="nowhere")["messages_read"] == 0
    assert learn(palace)["messages_read"] == 1
    with pytest.raises(UsageError, match="limit 0"):
        learn(palace, limit=0)


def test_messages_are_read_in_order_and_none_is_passed_over(palace: Palace) -> None:
    for i in range(5):
        say(palace, f"I prefer tool{i} for part{i}.")
    assert learn(palace, limit=2)["messages_read"] == 2
    for i in range(5, 8):
        say(palace, f"I prefer tool{i} for part{i}.")
    read = [learn(palace, limit=2)["messages_read"] for _ in range(3)]
    assert read == [2, 1, 0]
    assert len(everything(palace)) == 5


def test_two_wings_make_a_preference_hold_everywhere(palace: Palace) -> None:
    say(palace, LIKES, wing="one")
    learn(palace)
    assert everything(palace)[0].wing == "one"
    say(palace, AGAIN, wing="two")
    learn(palace)
    assert [item.wing for item in everything(palace)] == [None]


def test_confirmation_makes_one_fact_and_keeps_it_one(palace: Palace) -> None:
    say(palace, LIKES)
    learn(palace)
    id_ = everything(palace)[0].id
    answers = [feedback(palace, id_, True, actor="t") for _ in range(3)]
    assert [round(answer["new_confidence"], 2) for answer in answers] == [0.4, 0.5, 0.6]
    assert [answer["action"] for answer in answers] == ["strengthened"] * 3
    assert answers[-1]["status"] == "confirmed"
    (fact,) = believed(palace)
    assert (fact.statement, fact.origin) == (LIKES, "preference")
    assert fact.confidence == pytest.approx(0.6)
    assert not fact.unsupported
    for _ in range(3):
        feedback(palace, id_, True, actor="t")
        learn(palace)
    (fact,) = believed(palace)
    assert fact.confidence == pytest.approx(0.9)
    assert everything(palace)[0].status == "confirmed"


def test_denial_reaches_the_fact_and_ends_it_when_it_is_rejected(palace: Palace) -> None:
    id_ = by_hand(palace, confidence=0.6)
    (fact,) = believed(palace)
    feedback(palace, id_, False, actor="t")
    with palace.ledger.read() as cx:
        # A fact that is half-way to being locked takes a half of it.
        assert get_fact(cx, fact.id).confidence == pytest.approx(0.55)
    for _ in range(4):
        last = feedback(palace, id_, False, actor="t")
    assert (last["status"], last["action"]) == ("rejected", "weakened")
    with palace.ledger.read() as cx:
        assert get_fact(cx, fact.id).expired
    with pytest.raises(NotFoundError):
        feedback(palace, "prf_0123456789abcdef", True, actor="t")


def test_what_was_rejected_stays_so_until_a_person_says_otherwise(palace: Palace) -> None:
    say(palace, LIKES)
    learn(palace)
    id_ = everything(palace)[0].id
    feedback(palace, id_, False, actor="t")
    assert feedback(palace, id_, False, actor="t")["status"] == "rejected"
    for i in range(5):
        say(palace, f"{AGAIN} ({i})")
    assert learn(palace)["candidates_created"] == 0
    assert [item.status for item in everything(palace)] == ["rejected"]
    assert by_hand(palace, wing="w") == id_
    (found,) = everything(palace)
    assert (found.status, found.confidence) == ("confirmed", 0.7)


def test_a_fact_that_was_there_before_does_not_end_with_a_preference(palace: Palace) -> None:
    from castle.store.mind_facts import add_fact

    with palace.ledger.write() as cx:
        own = add_fact(cx, LIKES, confidence=0.9, origin="user", actor="t", now=palace.ledger.clock())
    id_ = by_hand(palace)
    for _ in range(6):
        feedback(palace, id_, False, actor="t")
    with palace.ledger.read() as cx:
        found = get_fact(cx, own.id)
    assert (found.expired, found.confidence) == (False, 0.9)


def test_by_hand_stands_at_once_and_the_same_again_is_the_same(palace: Palace) -> None:
    id_ = by_hand(palace, confidence=0.7)
    assert by_hand(palace, f"  {LIKES.upper()}", confidence=0.8) == id_
    (found,) = everything(palace)
    assert (found.status, found.confidence, found.origin) == ("confirmed", 0.8, "user")
    assert [fact.origin for fact in believed(palace)] == ["user"]
    candidate = by_hand(palace, "I prefer tabs.", confidence=0.5)
    with palace.ledger.read() as cx:
        assert get_preference(cx, candidate).status == "pending"
        assert [change.reason for change in history(cx, "preference", id_) if change.what == "status"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "  "},
        {"preference_type": "taste"},
        {"confidence": 1.5},
        {"falsifiable_condition": {"field": "a", "operator": "?"}},
    ],
)
def test_what_cannot_be_put_in_is_refused(palace: Palace, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        inject(palace, **{"text": LIKES, "actor": "t", **wrong})
    assert everything(palace) == []


def test_a_condition_is_kept_and_ends_preference_fact_and_procedure(palace: Palace) -> None:
    expression = {"field": "docker_version", "operator": ">=", "value": "30"}
    id_ = by_hand(palace, wing="w", falsifiable_condition=expression, trigger_context="setting up a database")
    assert preferences(palace)["preferences"][0]["falsifiable_condition"] == expression
    with palace.ledger.read() as cx:
        found = get_preference(cx, id_)
    assert found.fact and found.procedure
    check_environment(palace, {"docker_version": "30.1"}, wing="w", actor="t")
    with palace.ledger.read() as cx:
        assert get_preference(cx, id_).status == "expired"
        assert get_fact(cx, found.fact).expired
        assert get_procedure(cx, found.procedure).invalidated_at is not None
    by_hand(palace, wing="w")
    with palace.ledger.read() as cx:
        assert get_preference(cx, id_).status == "confirmed"
        assert not get_fact(cx, found.fact).expired


def test_feedback_reaches_the_procedure_and_outcomes_reach_the_preference(palace: Palace) -> None:
    id_ = by_hand(palace, trigger_context="setting up a database")
    with palace.ledger.read() as cx:
        found = get_preference(cx, id_)
        assert found.procedure is not None
        way = get_procedure(cx, found.procedure)
    assert (way.trigger, way.task_type, way.preference) == (
        "setting up a database", "preference_general", id_,
    )  # fmt: skip
    feedback(palace, id_, True, actor="t")
    with palace.ledger.read() as cx:
        assert get_procedure(cx, way.id).weight == pytest.approx(way.weight * 1.05)
    before = 0.8
    assert implicit_feedback(palace, id_, True, actor="t")["new_confidence"] == pytest.approx(before + 0.03)
    assert implicit_feedback(palace, id_, False, actor="t")["new_confidence"] == pytest.approx(before - 0.02)


def test_outcomes_alone_confirm_no_candidate(palace: Palace) -> None:
    id_ = by_hand(palace, confidence=0.5)
    for _ in range(10):
        implicit_feedback(palace, id_, True, actor="t")
    assert everything(palace)[0].status == "pending"
    assert believed(palace) == []


def test_what_nobody_speaks_of_fades_by_days_and_not_by_cycles(palace: Palace, clock: TurnedClock) -> None:
    say(palace, LIKES)
    learn(palace)
    mine = by_hand(palace, "I always use tabs.")
    clock.now += 2 * DAY
    assert learn(palace)["faded"] == 1
    assert everything(palace)[1].confidence == pytest.approx(INITIAL - 0.06)
    assert learn(palace)["faded"] == 0
    clock.now += 60 * DAY
    learn(palace)
    # At most 0.15 in one go; below 0.2 it is rejected. What was put in by hand stays.
    assert everything(palace)[1].confidence == pytest.approx(INITIAL - 0.21)
    assert everything(palace)[1].status == "rejected"
    with palace.ledger.read() as cx:
        assert get_preference(cx, mine).confidence == 0.7


def test_conflicts_are_found_by_direction_and_by_opposite_wishes(palace: Palace) -> None:
    one = by_hand(palace, "I like docker for databases.")
    other = by_hand(palace, "I don't like docker for databases.")
    short = by_hand(palace, "I prefer short answers.", preference_type="communication_style")
    long = by_hand(palace, "I prefer detailed answers.", preference_type="communication_style")
    by_hand(palace, "This is another notebook, not docker.")
    found = conflicts(palace)
    assert {frozenset(pair["ids"]) for pair in found["conflicts"]} == {
        frozenset((one, other)), frozenset((short, long)),
    }  # fmt: skip
    assert found["count"] == 2
    assert {item.confidence for item in everything(palace)} == {0.7}
    learn(palace)
    with palace.ledger.read() as cx:
        assert get_preference(cx, one).conflicts == (other,)


@pytest.mark.parametrize(
    ("one", "other", "possible"),
    [
        ("I prefer oak over pine.", "I prefer pine over oak.", False),
        ("I prefer oak rather than pine for masts.", "I prefer pine for masts.", False),
        ("Ich bevorzuge Eiche statt Kiefer.", "Ich bevorzuge Kiefer statt Eiche.", False),
        ("I prefer oak for masts.", "I prefer pine for masts.", True),
        ("Always use rope for halyards.", "Please use wire for halyards.", True),
    ],
)
def test_different_choices_for_the_same_are_in_conflict(
    palace: Palace, one: str, other: str, possible: bool
) -> None:
    ids = {by_hand(palace, one), by_hand(palace, other)}
    (found,) = conflicts(palace)["conflicts"]
    assert (set(found["ids"]), found["possible"]) == (ids, possible)
    learn(palace)
    noted = {item for one in everything(palace) for item in one.conflicts}
    assert noted == (set() if possible else ids)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer oak for masts.", "I prefer pine for decks."),
        ("I prefer oak over pine for masts.", "I prefer pine over oak for decks."),
        ("I like tea.", "I like coffee."),
        ("I prefer oak.", "I prefer early mornings."),
        ("I prefer oak for masts.", "I prefer old oak for masts."),
        ("Never use pine for masts.", "Never use birch for masts."),
    ],
)
def test_choices_that_go_together_are_in_no_conflict(palace: Palace, one: str, other: str) -> None:
    by_hand(palace, one)
    by_hand(palace, other)
    assert conflicts(palace)["count"] == 0


def test_the_opposite_choice_speaks_for_no_preference_there_is(palace: Palace) -> None:
    say(palace, "I prefer oak over pine.")
    say(palace, "I prefer pine over oak.")
    learn(palace)
    assert {item.text for item in everything(palace)} == {
        "I prefer oak over pine.", "I prefer pine over oak.",
    }  # fmt: skip
    assert conflicts(palace)["count"] == 1


def test_preferences_of_two_wings_are_in_no_conflict(palace: Palace) -> None:
    by_hand(palace, "I like docker.", wing="one")
    by_hand(palace, "I don't like docker.", wing="two")
    assert conflicts(palace)["count"] == 0


def test_they_are_listed_as_documented(palace: Palace) -> None:
    say(palace, "I prefer vim for editing.")
    learn(palace)
    by_hand(palace, "I prefer docker.", preference_type="tool_choice")
    by_hand(palace, "I like black coffee.", confidence=0.6)
    assert preferences(palace)["count"] == 2
    assert preferences(palace, min_confidence=0.65)["count"] == 1
    assert preferences(palace, preference_type="general")["count"] == 1
    assert preferences(palace, preference_type="tool_choice")["count"] == 2
    near = preferences(palace, context_text="where is the docker file?")["preferences"]
    assert near[0]["preference_text"] == "I prefer docker."
    assert near[0]["relevance"] > near[1]["relevance"]
    row = preferences(palace, preference_type="tool_choice")["preferences"][0]
    assert row["created_at"].endswith("+00:00")
    assert (row["lifecycle"], row["status"]) == ("semi_stable", "confirmed")
    with palace.ledger.read() as cx:
        assert status(cx) == {"total": 3, "by_status": {"confirmed": 2, "pending": 1}}


def test_a_recall_is_shown_three_in_three_hundred_characters_and_none_again_soon(
    palace: Palace, clock: TurnedClock
) -> None:
    for i in range(4):
        by_hand(palace, f"I prefer docker for service{i}.")
    by_hand(palace, "I prefer docker " + "very much " * 30, wing=None)
    by_hand(palace, "I prefer tea.")

    def shown(query: str = "how do I run docker?") -> list[str]:
        found = for_recall(palace, query, None, now=clock())
        return [item["preference_text"] for item in found]

    first = shown()
    assert len(first) == 3
    assert sum(map(len, first)) <= 300
    second = shown()
    assert len(second) == 1
    assert set(first).isdisjoint(second)
    assert shown() == []
    clock.now += 301_000_000
    assert len(shown()) == 3
    assert shown("what is the weather?") == []


def test_a_recall_shows_those_of_its_wing_and_of_all(palace: Palace, clock: TurnedClock) -> None:
    for wing in ("one", "two", None):
        by_hand(palace, f"I prefer docker in {wing}.", wing=wing)
    found = for_recall(palace, "docker", None, wing="one", now=clock())
    assert {item["preference_text"] for item in found} == {
        "I prefer docker in one.", "I prefer docker in None.",
    }  # fmt: skip
    with palace.ledger.read() as cx:
        assert len(for_wake_up(cx, "two")) == 2


def test_candidates_are_shown_to_nobody(palace: Palace, clock: TurnedClock) -> None:
    say(palace, LIKES)
    learn(palace)
    assert for_recall(palace, "docker databases", None, now=clock()) == ()
    with palace.ledger.read() as cx:
        assert for_wake_up(cx) == ()


def test_what_quotes_a_purged_drawer_goes_with_it(palace: Palace) -> None:
    drawer = say(palace, LIKES)
    other = say(palace, "I prefer tea in the morning.")
    learn(palace)
    found = next(item for item in everything(palace) if item.drawer == drawer)
    for _ in range(3):
        feedback(palace, found.id, True, actor="t")
    with palace.ledger.write() as cx:
        gone = purge_preferences(cx, [drawer])
    assert gone == [("fact", believed(palace)[0].id)]
    assert [item.drawer for item in everything(palace)] == [other]
    with palace.ledger.read() as cx:
        for table in ("mem_preference_evidence", "mem_terms"):
            column = "preference" if table == "mem_preference_evidence" else "id"
            query = f"SELECT count(*) FROM {table} WHERE {column} = ?"
            assert cx.exec_driver_sql(query, (found.id,)).scalar() == 0


class Reading:
    """A model that answers with what it is told to."""

    name, model = "fake", "m"

    def __init__(self, *found: dict[str, Any], reason: str | None = None) -> None:
        self.answer = json.dumps({"preferences": list(found)})
        self.reason = reason
        self.prompts: list[str] = []

    def available(self) -> str | None:
        return self.reason

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        self.prompts.append(prompt)
        return self.answer


def told(text: str, messages: list[int], **more: Any) -> dict[str, Any]:
    return {
        "preference_text": text, "preference_type": "tool_choice", "polarity": 1, "confidence": 1.0,
        "trigger_context": None, "messages": messages, **more,
    }  # fmt: skip


def test_a_model_must_cite_what_it_finds(palace: Palace) -> None:
    drawers = [say(palace, LIKES), say(palace, AGAIN)]
    say(palace, "What time is it?")
    model = Reading(
        told("Prefers docker for databases", [0, 1], trigger_context="databases"),
        told("Wants all files deleted", [0]),
        told("Prefers docker", [7]),
    )
    learn(palace, llm=model)
    assert "What time" not in model.prompts[0]
    with palace.ledger.read() as cx:
        cited = {item.drawer for found in preferences_where(cx) for item in evidence_of(cx, found.id)}
    assert cited == set(drawers)
    texts = {item.text for item in everything(palace)}
    assert "Wants all files deleted" not in texts
    assert all(item.status == "pending" for item in everything(palace))
    learn(palace, llm=model)
    assert len(model.prompts) == 1


def test_a_model_is_asked_within_its_budget(palace: Palace) -> None:
    model = Reading()
    spent = Metered(model, Budget(palace.ledger, 0))
    say(palace, LIKES)
    answer = learn(palace, llm=spent)
    assert answer["candidates_created"] == 1
    assert "no calls for preference are left today" in answer["notes"][0]
    assert model.prompts == []


@pytest.mark.parametrize("model", [Reading(reason="it is not running"), Reading({"preference_text": 3})])
def test_without_a_model_cues_do_what_they_can_and_say_so(palace: Palace, model: Reading) -> None:
    say(palace, LIKES)
    answer = learn(palace, llm=model)
    assert answer["candidates_created"] == 1
    assert "the model was not used" in answer["notes"][0]
    assert LlmError.__name__ not in answer["notes"][0]
