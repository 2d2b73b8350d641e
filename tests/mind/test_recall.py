"""Recall: every layer, any text, and nothing that is not said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from castle.errors import PalaceBusyError, PalaceError, UsageError
from castle.mind.mind import Mind
from castle.novelty.scoring import update
from castle.search.pipeline import search
from castle.store.graph import Graph
from castle.store.mind_edges import activate
from castle.store.mind_working import change_item
from castle.store.palace import Palace
from tests.conftest import TurnedClock
from tests.mind.conftest import Save

HARD = "what's \"up\" -doc: AND (NEAR* OR) 検索 \ud83d 👩‍🚀 \x00 %_' ;--"


def test_every_layer_is_recalled_with_its_own_type_and_why(mind: Mind, save: Save) -> None:
    ids = {
        "working": save("harbour: look for the key", "working").id,
        "episodic": save("We lost the key in the harbour").id,
        "semantic": save("The harbour master has a spare key", "semantic", confidence=0.7).id,
        "procedural": save("Ask the harbour master", "procedural", trigger_condition="harbour key lost").id,
    }
    found = mind.recall("harbour key")
    assert {memory.layer: memory.id for memory in found.memories} == ids
    for memory in found.memories:
        assert memory.memory_type == memory.layer
        assert memory.why["words"]
        assert memory.score > 0
        assert memory.drawer_ids or memory.layer == "working"
    assert [memory.id for memory in found.procedures] == [ids["procedural"]]
    assert [m.id for m in mind.recall("harbour key").memories] == [m.id for m in found.memories]


@pytest.mark.parametrize("layer", ["working", "episodic", "semantic", "procedural"])
def test_one_layer_can_be_asked_for(mind: Mind, save: Save, layer: str) -> None:
    for kind in ("working", "episodic", "semantic", "procedural"):
        save(f"harbour light, {kind}", kind)
    found = mind.recall("harbour light", {"memory_type": layer})
    assert [memory.layer for memory in found.memories] == [layer]


def test_a_fact_is_never_lost_because_of_episodes(mind: Mind, save: Save) -> None:
    fact = save("The harbour opens at six", "semantic", confidence=0.6)
    for number in range(30):
        save(f"In the harbour, day {number}: it opens, it closes")
    found = mind.recall("when does the harbour open", {"top_k": 5})
    assert fact.id in [memory.id for memory in found.memories]


def test_words_are_enough_while_the_embedder_is_loaded(mind: Mind, palace: Palace, save: Save) -> None:
    fact = save("Die Fähre fährt um zwölf", "semantic")
    cjk = save("港の検索は難しい", "semantic")
    episode = save("The ferry left late")
    palace.unready = "the embedder is being loaded; words only"
    assert palace.embedder_loaded is False
    for query, wanted in (("fähre", fact), ("検索", cjk), ("ferries leaving", episode)):
        found = mind.recall(query)
        assert [memory.id for memory in found.memories][:1] == [wanted.id], query
        assert found.fallback
        assert palace.unready in found.degraded
    assert palace.embedder_loaded is False


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(HARD)
@example("\ud800")
@example('"')
@given(st.text(min_size=1, max_size=40))
def test_any_text_is_a_legal_query(mind: Mind, query: str) -> None:
    if query.strip():
        assert mind.recall(query, {"memory_type": ["semantic", "procedural", "working"]}).memories is not None


def test_a_hard_text_is_found_by_its_own_words(mind: Mind, save: Save) -> None:
    saved = save(HARD, "semantic")
    assert [memory.id for memory in mind.recall(HARD).memories] == [saved.id]


def test_an_empty_query_and_unknown_options_are_refused(mind: Mind) -> None:
    for query, options in (
        (" \n", {}),
        ("x", {"colour": "red"}),
        ("x", {"top_k": 0}),
        ("x", {"strategy": "guess"}),
        ("x", {"memory_type": "dream"}),
        ("x", {"since": "soon"}),
        ("x", {"min_confidence": 2}),
    ):
        with pytest.raises(UsageError):
            mind.recall(query, options)


def test_what_is_unsure_or_over_is_left_out_and_counted(mind: Mind, save: Save) -> None:
    sure = save("The mast is oak", "semantic", confidence=0.9)
    unsure = save("The mast may be pine", "semantic", confidence=0.2)
    gone = save("The mast is iron", "semantic", confidence=0.6)
    episode = save("We looked at the mast")
    mind.forget(gone.id, reason="replaced", expire=True)
    found = mind.recall("mast", {"min_confidence": 0.5})
    assert {memory.id for memory in found.memories} == {sure.id, episode.id}
    assert found.hidden == {"unsure": 1, "expired": 1}
    everything = mind.recall("mast", {"include_expired": True})
    assert {memory.id: memory.expired for memory in everything.memories}[gone.id] is True
    assert unsure.id in {memory.id for memory in everything.memories}


def test_filters_by_session_tags_wing_and_time(mind: Mind, save: Save, clock: TurnedClock) -> None:
    one = save("sail blue", session_id="s1", tags=["a", "b"])
    clock.now += 86_400_000_000 * 3
    two = save("sail green", session_id="s2", tags=["b"], wing="other")
    for options, wanted in (
        ({"session_id": "s1"}, {one.id}),
        ({"tags": ["b"]}, {one.id, two.id}),
        ({"tags": ["a", "b"]}, {one.id}),
        ({"wing": "other"}, {two.id}),
        ({"since": one.created_at[:10], "until": one.created_at[:10]}, {one.id}),
        ({"limit": 1}, {one.id, two.id}),
    ):
        found = {memory.id for memory in mind.recall("sail", options).memories}
        assert found <= wanted and found, options
    with pytest.raises(UsageError, match="since is not before until"):
        mind.recall("sail", {"since": "2026-05-02", "until": "2026-05-01"})


def test_associations_lead_to_what_no_word_does(mind: Mind, save: Save) -> None:
    start = save("The compass is broken")
    end = save("Uncle Bo repairs things", "semantic")
    mind.associate(start.id, end.id, 0.9, "causes")
    plain = mind.recall("compass broken", {"memory_type": ["episodic", "semantic"], "strategy": "two_pass"})
    assert plain.memories[0].id == start.id
    words = mind.recall("compass", {"strategy": "two_pass", "top_k": 2})
    assert end.id in {memory.id for memory in words.memories}
    assert [edge.id for edge in mind.related(start.id)] == [end.id]


def test_facts_of_the_graph_lead_on_while_they_hold(mind: Mind, palace: Palace, save: Save) -> None:
    graph = Graph(palace.ledger, actor="ann")
    start = save("The compass is broken")
    graph.add("compass", "belongs to", "Ann", drawer=start.id)
    told = graph.add("Bo", "is uncle of", "Ann")
    end = save("Uncle Bo repairs things", "semantic", triple_ids=[told.fact.id])
    asked = {"strategy": "two_pass", "top_k": 2, "memory_type": ["episodic", "semantic"]}
    assert end.id in {memory.id for memory in mind.recall("compass", asked).memories}
    mind.forget(end.id, reason="he moved", expire=True)
    assert {edge.kind for edge in mind.related(start.id)} == {"entity"}
    with palace.ledger.read() as cx:
        reached = activate(cx, {("drawer", start.id): 1.0}, palace.ledger.clock())
    assert ("fact", end.id) not in reached


def test_what_words_alone_have_found_has_its_place_among_what_is_near(
    mind: Mind, palace: Palace, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search names no cosine of a drawer that its vectors did not bring."""
    save("The compass is broken")

    def bare(*args: Any, **kwargs: Any) -> Any:
        result = search(*args, **kwargs)
        return replace(result, hits=tuple(replace(hit, stages={}) for hit in result.hits))

    mind.recall("compass")
    update(palace)
    monkeypatch.setattr("castle.mind.recalling.search", bare)
    assert "meaning" in mind.recall("compass").memories[0].why


def test_contradictions_are_shown(mind: Mind, save: Save) -> None:
    one = save("The lamp is red", "semantic")
    two = save("The lamp is green", "semantic")
    mind.associate(one.id, two.id, -0.8, "contradicts")
    found = mind.recall("lamp")
    assert {frozenset(pair) for pair in found.conflicts} == {frozenset((one.id, two.id))}
    assert {memory.id: memory.conflicts for memory in found.memories} == {
        one.id: (two.id,),
        two.id: (one.id,),
    }


def test_what_is_recalled_while_cold_comes_back(mind: Mind, save: Save) -> None:
    gone = save("The old chart of the bay")
    mind.forget(gone.id, reason="old")
    for _ in range(2):
        assert mind.get(gone.id)[0].state == "cold"
        mind.recall("chart bay", {"include_cold": True})
    memory, told = mind.get(gone.id)
    assert memory.state == "active"
    assert told[-1]["reason"] == "recalled 2 times while cold"


def test_looking_counts_and_a_busy_palace_goes_without(
    mind: Mind, palace: Palace, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = save("rope", "working")
    mind.recall("rope")
    assert mind.get(item.id)[0].was_referenced

    def busy(*_: object, **__: object) -> None:
        raise PalaceBusyError("busy")

    monkeypatch.setattr("castle.mind.accesses.refresh", busy)
    with palace.ledger.write() as cx:
        change_item(cx, item.id, was_referenced=False)
    assert mind.recall("rope").memories
    assert not mind.get(item.id)[0].was_referenced


def test_a_full_disk_is_no_reason_to_recall_nothing(
    mind: Mind, palace: Palace, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("Oak lasts", "semantic")
    way = save("Caulk the seams", "procedural", trigger_condition="leak")

    def full(*_: object, **__: object) -> None:
        raise PalaceError("the disk is full")

    monkeypatch.setattr(palace.ledger, "write", full)
    assert mind.recall("oak lasts").memories[0].content == "Oak lasts"
    assert [one.template.id for one in mind.match_procedures("leak")] == [way.id]


def test_secrets_are_masked_wherever_they_were_said(mind: Mind, save: Save) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    text = f"The token is {secret} for the crane"
    for kind in ("working", "episodic", "semantic", "procedural"):
        options = {"metadata": {"note": text}, "tags": [secret]}
        assert secret not in repr(save(text, kind, **options))
    assert secret not in repr(mind.recall(f"crane token {secret}"))


def test_what_is_prepared_by_others_is_an_episode_too(mind: Mind, palace: Palace) -> None:
    from castle.mine.notes import add

    note = add(palace, "A note about kelp", wing="w", room="r", source_file="", added_by="bo", halls={})
    assert [(m.id, m.origin) for m in mind.recall("kelp").memories] == [(note.id, "note")]
