"""What is promised about the archive: the mind changes what it sees, never what was filed."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from sqlalchemy import select

from castle import Castle
from castle.clock import to_iso
from castle.errors import NotFoundError, RefusedError
from castle.mind.mind import Mind
from castle.records import Scope
from castle.search.options import Options
from castle.search.pipeline import search
from castle.store.ledger import Ledger
from castle.store.mind_episodes import set_scores
from castle.store.mind_facts import add_fact
from castle.store.mind_rows import history
from castle.store.mind_tables import MIND, mem_facts
from castle.store.mind_values import Source
from castle.store.palace import Palace
from castle.store.reading import drawers_by_id
from castle.store.schema import drawers, tables
from tests.mind.conftest import Save

HARD = "Tab\there, CRLF\r\nend, NUL \x00, lone \ud83d, emoji 👩‍🚀 and  two blanks \n"


def archive(palace: Palace) -> list[tuple[object, ...]]:
    """Return every drawer as it is stored."""
    with palace.ledger.read() as cx:
        return [tuple(row) for row in cx.execute(select(drawers).order_by(drawers.c.rid))]


def test_v1_what_runs_by_itself_leaves_the_drawers_alone(mind: Mind, palace: Palace, save: Save) -> None:
    ids = [save(f"note {n} about the harbour").id for n in range(3)]
    before = archive(palace)
    mind.recall("harbour")
    mind.forget(ids[0], reason="a test")
    mind.restore(ids[0])
    mind.forget(ids[1], expire=True)
    mind.pin(ids[2])
    with palace.ledger.write() as cx:
        set_scores(cx, {ids[2]: (0.5, 1)}, palace.ledger.clock())
    mind.check_environment({"a": "1"})
    assert archive(palace) == before


@pytest.mark.parametrize("kind", ["episodic", "semantic", "procedural"])
def test_v2_what_somebody_states_is_filed_to_the_byte(palace: Palace, save: Save, kind: str) -> None:
    found = save(HARD, kind)
    with palace.ledger.read() as cx:
        (drawer,) = drawers_by_id(cx, found.drawer_ids).values()
    exact = drawer.text.encode() if drawer.raw is None else drawer.raw
    assert exact == HARD.encode("utf-8", "surrogatepass")
    assert drawer.added_by == "ann"


def test_v2_working_items_are_not_filed(palace: Palace, save: Save) -> None:
    save("look at the rudder", "working")
    assert archive(palace) == []


def test_v3_what_is_derived_is_no_drawer_and_names_its_sources(palace: Palace, save: Save) -> None:
    source = save("The mast broke in the storm")
    before = archive(palace)
    with palace.ledger.write() as cx:
        made = add_fact(
            cx,
            "Masts break in storms",
            confidence=0.35,
            origin="pattern",
            actor="cycle",
            now=1,
            sources=[Source("drawer", source.id)],
        )
        bare = add_fact(cx, "Storms are rare", confidence=0.3, origin="insight", actor="cycle", now=1)
    assert (made.unsupported, bare.unsupported) == (False, True)
    assert made.drawer is None
    assert archive(palace) == before


def test_v4_a_long_text_is_cut_into_drawers_that_joined_are_it(palace: Palace, mind: Mind) -> None:
    long = "\n\n".join(f"Chapter {n}. " + "The sea is wide. " * 150 for n in range(20))
    saved = mind.save(long, "semantic")
    with palace.ledger.read() as cx:
        query = select(drawers.c.text).order_by(drawers.c.rid)
        assert "".join(cx.execute(query).scalars()) == long
    assert "filed in" in saved.notes[0]
    assert mind.recall("wide sea").memories[0].id == saved.memory.id
    assert [memory.layer for memory in mind.recall("wide sea").memories] == ["semantic"]


def test_v5_states_change_with_reason_and_actor_and_back(mind: Mind, palace: Palace, save: Save) -> None:
    fact = save("The lamp is red", "semantic", confidence=0.4)
    mind.forget(fact.id, reason="not needed")
    mind.restore(fact.id, reason="needed after all")
    mind.forget(fact.id, reason="painted", expire=True)
    mind.restore(fact.id, reason="no, it was not")
    with palace.ledger.read() as cx:
        told = [(c.what, c.reason, c.actor) for c in history(cx, "fact", fact.id)]
    assert told == [
        ("confidence", "origin user", "ann"),
        ("state", "not needed", "ann"),
        ("state", "needed after all", "ann"),
        ("expired", "painted", "ann"),
        ("expired", "no, it was not", "ann"),
    ]


def test_v6_the_search_of_the_palace_finds_what_the_mind_forgot(
    mind: Mind, palace: Palace, save: Save
) -> None:
    kept = save("The anchor lies in the bay")
    gone = save("The anchor chain lies in the bay, too")
    same = Options(now=palace.ledger.clock())
    before = [(hit.id, hit.score) for hit in search(palace, "anchor bay", Scope(), 10, same).hits]
    mind.forget(gone.id, reason="old")
    after = search(palace, "anchor bay", Scope(), 10, same)
    assert [(hit.id, hit.score) for hit in after.hits] == before
    found = mind.recall("anchor bay")
    assert [memory.id for memory in found.memories] == [kept.id]
    assert found.hidden == {"cold": 1}
    with_cold = mind.recall("anchor bay", {"include_cold": True})
    assert {memory.id for memory in with_cold.memories} == {kept.id, gone.id}


def test_v7_the_mind_has_no_way_to_destroy() -> None:
    assert not any("purge" in name or "delete" in name for name, _ in inspect.getmembers(Mind))


def test_v8_to_forget_is_to_put_away_and_locked_facts_resist(mind: Mind, save: Save) -> None:
    fact = save("Water is wet", "semantic", confidence=0.9)
    with pytest.raises(RefusedError, match="locked fact"):
        mind.forget(fact.id, reason="a slip")
    assert mind.forget(fact.id, reason="meant", force=True).action == "archived"
    assert mind.forget(fact.id, reason="again", force=True).action == "unchanged"
    assert mind.forget(fact.id, reason="dry", expire=True).action == "expired"
    pinned = save("The code is on the wall")
    mind.pin(pinned.id)
    with pytest.raises(RefusedError, match="pinned"):
        mind.forget(pinned.id)


def test_v9_a_restored_memory_is_the_same_to_the_byte(mind: Mind, palace: Palace, save: Save) -> None:
    before = save("Exactly these words", tags=["a"], valence=-0.4, session_id="s1", metadata={"k": [1]})
    rows = archive(palace)
    mind.forget(before.id, reason="a test")
    assert mind.cold("exactly").memories[0].content == before.content
    assert mind.cold("nothing like it").total == 0
    mind.restore(before.id)
    after, _ = mind.get(before.id)
    assert after == before
    assert archive(palace) == rows


def test_a_fact_of_the_graph_ends_with_the_fact_that_it_is_linked_to(
    mind: Mind, palace: Palace, save: Save
) -> None:
    from castle.store.graph import Graph

    graph = Graph(palace.ledger, actor="ann")
    added = graph.add("Ada", "keeps", "the lighthouse", valid_from="2020-01-01")
    with pytest.raises(NotFoundError, match="kg query"):
        save("Ada keeps the lighthouse", "semantic", triple_ids=["nothing"])
    fact = save("Ada keeps the lighthouse", "semantic", confidence=0.6, triple_ids=[added.fact.id])
    mind.forget(fact.id, reason="she left", expire=True)
    (held,) = graph.query("Ada").facts
    assert to_iso(held.valid_to or 0)[:10] == to_iso(palace.ledger.clock())[:10]
    assert "ended" in [change["new"] for change in mind.get(fact.id)[1]]


def test_a_kill_between_filing_and_remembering_leaves_neither(
    mind: Mind, palace: Palace, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("castle.mind.saving.add_fact", dies)
    with pytest.raises(KeyboardInterrupt):
        save("half a thought", "semantic")
    assert archive(palace) == []
    with Ledger(palace.root).read() as cx:
        assert cx.execute(select(mem_facts)).first() is None


def test_v7_a_purge_takes_what_was_stated_in_a_drawer_and_what_was_made_of_it(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        said = "The combination of the safe is eleven, forty, two"
        fact = castle.memory_save(said, "semantic", {"confidence": 0.6}).memory
        other = castle.memory_save("The safe is green", "semantic").memory
        episode = castle.memory_save("We opened the safe with eleven, forty, two").memory
        palace = castle._palace()
        with palace.ledger.write() as cx:
            made = add_fact(
                cx,
                "Safes open with eleven, forty, two",
                confidence=0.3,
                origin="pattern",
                actor="cycle",
                now=1,
                sources=[Source("drawer", episode.id)],
            )
        castle.memory_associate(other.id, episode.id)
        for drawer in (*fact.drawer_ids, episode.id):
            castle.purge(drawer, reason="a test")
        with palace.ledger.read() as cx:
            left = {name: list(cx.execute(select(tables.tables[name]))) for name in MIND}
        assert [row.id for row in left["mem_facts"]] == [other.id]
        assert {row.id for row in left["mem_tombstones"]} == {fact.id, made.id}
        assert (left["mem_edges"], left["mem_sources"]) == ([], [])
        assert "forty" not in repr(left)
        assert "combination" not in repr(castle.memory_recall("combination safe").memories)
