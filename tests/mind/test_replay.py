"""Replay: five stages, and the ten constraints, each by itself and in the whole."""

from __future__ import annotations

import random
from typing import Any

import pytest

from castle.errors import UsageError
from castle.mind.replay import constraints as ten
from castle.mind.replay.pairs import Pair, by_link
from castle.mind.replay.pool import creative_pool, hypothesis_feedback
from castle.mind.replay.replaying import replay
from castle.mind.replay.walk import sample, similarity, walk, weight
from castle.store.mind_edges import add_edge
from castle.store.mind_facts import add_fact, facts, get_fact
from castle.store.mind_hypotheses import get_hypothesis
from castle.store.mind_rows import lease, sources_of
from castle.store.palace import Palace
from tests.mind.conftest import Save
from tests.mind.episodes import Scripted

HYPOTHESIS = "Radiators could be cooled by the night wind that the cat avoids"


def run(palace: Palace, **options: Any) -> dict[str, Any]:
    return replay(palace, options.pop("theme", None), actor="ann", seed=options.pop("seed", 1), **options)


def suggesting(text: str = HYPOTHESIS, pair: int = 0) -> dict[str, Any]:
    return {"hypotheses": [{"pair": pair, "hypothesis": text, "rationale": "both are about warmth"}]}


@pytest.fixture
def apart(save: Save) -> list[str]:
    texts = (
        "Redis keeps the session tokens",
        "Bread rises when yeast is fed",
        "Postgres vacuums rows overnight",
    )
    return [save(text, "semantic", confidence=0.6, session_id=text[:5]).id for text in texts]


# The ten constraints


def test_one_remote_seed() -> None:
    assert ten.remote_seed([0.5, 0.29]).passed
    assert not ten.remote_seed([0.5, 0.3]).passed and not ten.remote_seed([]).passed


def test_two_bounded_walk() -> None:
    assert ten.bounded_walk([1, 2, 2]).passed and ten.bounded_walk([]).passed
    assert not ten.bounded_walk([1, 2, 3]).passed and not ten.bounded_walk([1, 1, 1, 1]).passed


def test_three_cross_domain() -> None:
    assert ten.cross_domain(0.59).passed and not ten.cross_domain(0.6).passed


def test_four_no_contradiction() -> None:
    assert ten.no_contradiction({"a": 0.9}, {"a": -0.3}).passed
    assert ten.no_contradiction({"a": 0.69}, {"a": -0.9}, ["a"]).passed
    assert not ten.no_contradiction({"a": 0.7}, {"a": -0.31}).passed
    assert not ten.no_contradiction({"a": 0.7}, {}, ["a"]).passed


def test_five_not_banal() -> None:
    assert ten.not_banal(0.95).passed and not ten.not_banal(0.951).passed


def test_six_two_sources() -> None:
    assert ten.two_sources(["a", "c"], ["b", "c"]).passed
    assert not ten.two_sources(["a"], ["a"]).passed and not ten.two_sources(["a"], ["a", "b"]).passed


def test_seven_stability() -> None:
    assert not ten.stability(2).passed
    assert ten.stability(3).passed and ten.stability(1, confirmed=True).passed


def test_eight_initial_confidence() -> None:
    assert ten.initial_confidence(0.1).passed and not ten.initial_confidence(0.31).passed
    assert (ten.within(0.9), ten.within(0.0)) == (0.3, 0.1)


def test_nine_cycle_cap() -> None:
    assert ten.cycle_cap(9).passed and not ten.cycle_cap(10).passed


def test_ten_rejection_memory() -> None:
    assert ten.rejection_memory([]).passed and ten.rejection_memory([0.84]).passed
    assert not ten.rejection_memory([0.1, 0.85]).passed
    assert ten.rejected(3) and not ten.rejected(2)
    assert ten.topic_factor(["a"], ["a", "b"]) == 0.1 and ten.topic_factor(["c"], ["a"]) == 1.0


def test_they_are_ten() -> None:
    assert len(ten.NAMES) == len(set(ten.NAMES)) == 10
    assert all(callable(getattr(ten, name)) for name in ten.NAMES)


# The stages


def test_a_seed_is_recent_moving_seldom_used_and_near_the_theme(palace: Palace, apart: list[str]) -> None:
    with palace.ledger.read() as cx:
        fact = get_fact(cx, apart[0])

    def of(hours: float = 0.0, valence: float = 0.0, used: int = 0, near: float | None = None) -> float:
        now = fact.updated_at + int(hours * 3.6e9)
        return weight(fact, now, valence=valence, used=used, refused=(), near=near)

    assert of() == pytest.approx(0.5)
    assert of(hours=24) == pytest.approx(0.25)
    assert of(valence=-1) == pytest.approx(1.0)
    assert of(used=1) == pytest.approx(0.25)
    assert of(near=0.8) > of(near=0.2) > of(near=-0.5) > 0
    assert of(hours=1e9) == 0.001
    refused = weight(fact, fact.updated_at, valence=0, used=0, refused=["session"], near=None)
    assert refused == pytest.approx(0.05)


def test_draws_are_repeatable_and_one_seed_is_far() -> None:
    ids = [f"f{n}" for n in range(6)]
    weights = {id_: 1.0 if id_ != "f5" else 1e-9 for id_ in ids}

    def alike(one: str, other: str) -> float:
        return 0.1 if "f5" in (one, other) else 0.9

    first = sample(weights, random.Random(3), alike, None)
    assert first == sample(weights, random.Random(3), alike, None)
    assert len(set(first)) == 3 and first[-1] == "f5"
    to_theme = {id_: 0.2 if id_ == "f4" else 0.9 for id_ in ids}
    assert "f4" in sample({**weights, "f4": 1e-9}, random.Random(1), alike, to_theme)


def test_a_walk_stays_within_two_hops(palace: Palace) -> None:
    with palace.ledger.write() as cx:
        for one, other in zip("abcd", "bcde", strict=True):
            add_edge(cx, ("fact", one), ("fact", other), "causes", 0.9, origin="user", now=0)
        add_edge(cx, ("fact", "a"), ("fact", "x"), "contradicts", -0.9, origin="user", now=0)
        for seed in range(10):
            found = walk(cx, ("fact", "a"), 0, random.Random(seed))
            assert ten.bounded_walk(found.depths).passed
            assert {id_ for _, id_ in found.keys} == {"a", "b", "c"}
        assert walk(cx, ("fact", "lone"), 0, random.Random(1)).keys == (("fact", "lone"),)


def test_without_vectors_words_tell_what_is_alike() -> None:
    alike = similarity({}, {"a": "red apple", "b": "green apple", "c": "car"})
    assert alike("a", "b") == pytest.approx(1 / 3) and alike("a", "c") == 0.0


def test_a_pair_without_a_link_gives_nothing_without_a_model() -> None:
    def pair(one: str, other: str) -> Pair:
        return Pair(("a", "b"), (("fact", "a"), ("fact", "b")), (one, other), 0.1)

    linked = by_link([pair("Redis keeps tokens", "Nobody keeps bees"), pair("Redis", "Bees")])
    assert len(linked) == 1 and "keeps" in linked[0].text and linked[0].confidence == 0.1


# The whole


def test_too_little_is_said_so(palace: Palace, save: Save) -> None:
    save("Only one fact", "semantic")
    told = run(palace)
    assert told["hypotheses_generated"] == 0 and "fewer than two facts" in told["notes"][0]
    with pytest.raises(UsageError, match="theme is empty"):
        run(palace, theme=" ")


def test_a_model_suggests_and_the_pool_keeps_it_with_its_sources(palace: Palace, apart: list[str]) -> None:
    provider = Scripted(suggesting())
    told = run(palace, llm=provider)
    assert (told["hypotheses_generated"], told["seeds_found"], told["empty_cycles_streak"]) == (1, 3, 0)
    assert len(provider.asked) == 1 and "Redis keeps" in provider.asked[0]
    assert set(told["constraints"]) == set(ten.NAMES)
    (entry,) = creative_pool(palace)["entries"]
    assert entry["confidence"] == 0.24 and entry["stability_count"] == 1
    assert len(set(entry["source_seed_ids"])) == 2 and entry["topic_tags"]
    with palace.ledger.read() as cx:
        cited = {source.id for source in sources_of(cx, "hypothesis", entry["id"])}
        assert cited >= set(entry["source_seed_ids"])
        assert {fact.id for fact in facts(cx)} == set(apart)


def test_the_same_again_makes_it_stable_and_no_second_one(palace: Palace, apart: list[str]) -> None:
    ids = {run(palace, llm=Scripted(suggesting()), seed=seed)["hypotheses"][0] for seed in range(3)}
    assert len(ids) == 1
    with palace.ledger.read() as cx:
        one = get_hypothesis(cx, ids.pop())
    assert (one.stability, one.confidence) == (3, 0.3)


def test_what_is_known_rejected_or_denied_does_not_pass(palace: Palace, apart: list[str], save: Save) -> None:
    def blocked(text: str, by: str) -> None:
        told = run(palace, llm=Scripted(suggesting(text)))
        assert told["hypotheses_generated"] == 0 and told["constraints"][by]["failed"] == 1, told
        assert told["filtered_hypotheses"] == 1

    blocked("Redis keeps the session tokens", "not_banal")
    save("The night wind does not cool the old radiators", "semantic", confidence=0.9)
    blocked("The night wind does cool the old radiators", "no_contradiction")
    id_ = run(palace, llm=Scripted(suggesting()))["hypotheses"][0]
    for _ in range(3):
        hypothesis_feedback(palace, id_, False, actor="ann")
    blocked(HYPOTHESIS, "rejection_memory")


def test_seeds_of_one_source_do_not_count_as_two(palace: Palace, save: Save) -> None:
    for text in ("Redis keeps the session tokens", "Bread rises when yeast is fed"):
        save(text, "semantic", session_id="same")
    told = run(palace, llm=Scripted(suggesting()))
    assert told["hypotheses_generated"] == 0 and told["constraints"]["two_sources"]["failed"] == 1


def test_a_strong_contradiction_of_a_seed_blocks(palace: Palace, apart: list[str]) -> None:
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        for one in apart:
            for other in apart:
                if one != other:
                    add_edge(cx, ("fact", one), ("fact", other), "contradicts", -0.9, origin="user", now=now)
        for id_ in apart:
            cx.exec_driver_sql("UPDATE mem_facts SET confidence = 0.8 WHERE id = ?", (id_,))
    now_blocked = run(palace, llm=Scripted(suggesting()))
    assert now_blocked["constraints"]["no_contradiction"]["failed"] == 1


def test_a_cycle_adds_ten_at_the_most(
    palace: Palace, apart: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ten, "PER_CYCLE", 1)
    words = ("apples pears plums", "iron copper tin", "rivers lakes seas")
    answer = {"hypotheses": [{"pair": 0, "hypothesis": f"Perhaps {text}", "rationale": ""} for text in words]}
    told = run(palace, llm=Scripted(answer))
    assert told["hypotheses_generated"] == 1 and told["constraints"]["cycle_cap"] == {
        "passed": 1,
        "failed": 2,
    }


def test_without_a_model_shared_words_link_and_the_notes_say_so(palace: Palace, save: Save) -> None:
    save("The cache keeps tokens for the session", "semantic", session_id="a")
    save("A librarian keeps tokens of old coats", "semantic", session_id="b")
    told = run(palace)
    assert "no language model" in told["notes"][0]
    (entry,) = creative_pool(palace)["entries"]
    assert "both speak of" in entry["hypothesis_text"] and entry["confidence"] == 0.1
    assert entry["metadata"]["method"] == "link"


def test_insights_are_no_seeds_and_empty_cycles_are_counted(palace: Palace, apart: list[str]) -> None:
    with palace.ledger.write() as cx:
        insight = add_fact(cx, "All is one", confidence=0.6, origin="insight", actor="t", now=1)
    streaks = []
    for seed in range(4):
        told = run(palace, llm=Scripted({"hypotheses": []}), seed=seed)
        assert insight.id not in told["seeds"]
        streaks.append(told["empty_cycles_streak"])
    assert streaks == [1, 2, 3, 4]


def test_a_model_that_fails_costs_no_cycle(palace: Palace, apart: list[str]) -> None:
    told = run(palace, llm=Scripted("no", "no"))
    assert told["cycle"] == 1 and "shared words" in told["notes"][0]


def test_one_process_replays(palace: Palace, apart: list[str]) -> None:
    with palace.ledger.write() as cx:
        lease(cx, "replay", "somebody", 60, palace.ledger.clock())
    assert run(palace)["notes"] == ["another process is replaying"]


def test_it_works_while_no_embedder_is_there(palace: Palace, apart: list[str]) -> None:
    palace.unready = "still loading"
    told = run(palace, llm=Scripted(suggesting()))
    assert told["hypotheses_generated"] == 1 and "no embedder" in " ".join(told["notes"])
