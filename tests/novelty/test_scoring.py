from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select

from castle.errors import PalaceError
from castle.novelty import backfill, blocks, nearby, refresh, scoring, update
from castle.novelty.scoring import NO_VECTORS, TIME_IS_UP
from castle.store import novelty as store
from castle.store.catchup import catch_up_vectors
from castle.store.filing import Filing, Place, Version
from castle.store.ledger import set_value, to_json
from castle.store.novelty_tables import novelty
from castle.store.palace import Palace
from castle.store.places import forget, rename_wing, restore
from castle.store.projection import Watermark
from castle.store.reading import changed_rows
from castle.store.schema import drawers
from castle.store.schema import vectors as cache
from tests.novelty.oracle import expected, ids, stored
from tests.store.filer import chunks, file

WORDS = "anchor boat crane dock eel ferry gull harbour island jetty kelp lighthouse".split()


def some_texts(seed: int, count: int) -> list[str]:
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=4)) + "\n" for _ in range(count)]


def settled(palace: Palace) -> None:
    """Score everything and compare with the definition."""
    report = backfill(palace)
    assert (report.pending, report.reason, report.complete) == (0, "", True)
    assert stored(palace) == pytest.approx(expected(palace), abs=2e-6)
    assert report.drawers == len(expected(palace))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a few drawers many batches and blocks, most of which are read again each time."""
    monkeypatch.setattr(scoring, "BATCH", 3)
    monkeypatch.setattr(scoring, "FEW", 2)
    monkeypatch.setattr(scoring, "HASTY_BATCH", 2)
    monkeypatch.setattr(scoring, "CHANGES", 5)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "HELD_BYTES", 3000)


def test_an_empty_palace_has_nothing_to_score(palace: Palace) -> None:
    assert update(palace) == scoring.NoveltyReport(0, 0, 0)
    assert backfill(palace) == scoring.NoveltyReport(0, 0, 0)


def test_the_first_drawer_is_new_and_of_twins_only_the_later_one_is_not(palace: Palace) -> None:
    file(palace.ledger, ["the harbour is closed\n", "gulls at the lighthouse\n"], path="a.md")
    file(palace.ledger, ["the harbour is closed\n"], path="b.md")
    assert backfill(palace).scored == 3
    first, later = ids(palace, "the harbour is closed\n")
    scores = stored(palace)
    assert scores[first] == 1.0
    assert scores[later] == 0.0
    assert 0.1 < scores[ids(palace, "gulls at the lighthouse\n")[0]] < 1.0


def test_copies_have_none_whatever_context_they_were_embedded_with(palace: Palace) -> None:
    file(palace.ledger, ["ferry\n"], path="a.md")
    with palace.ledger.write() as cx:
        filing = Filing(palace.ledger, Place("file:b", "file", "b", "b", "w", "r"), 0)
        (new,) = chunks(["ferry\n"])
        filing.stage(cx, [type(new)(new.chunk, None, "g", "file", "anchor boat crane dock", 0)], "test")
        filing.complete(cx, Version(b"", 0, "", "", "utf-8", 0, "test"))
    backfill(palace)
    assert [stored(palace)[id_] for id_ in ids(palace, "ferry\n")] == [1.0, 0.0]


def test_a_new_revision_is_not_stale_because_of_the_one_it_replaces(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves at nine\n"])
    backfill(palace)
    file(palace.ledger, ["the ferry leaves at ten\n"], base=1)
    settled(palace)
    assert list(stored(palace).values()) == [1.0]


def test_what_was_compared_with_a_drawer_that_has_gone_is_scored_again(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves at nine\n"], path="a.md")
    file(palace.ledger, ["the ferry leaves at nine\n"], path="b.md")
    settled(palace)
    first, later = ids(palace, "the ferry leaves at nine\n")
    forget(palace.ledger, id_=first, actor="anna")
    assert stored(palace) == {}, "a score that speaks of a forgotten drawer was used"
    assert update(palace).scored == 1
    assert stored(palace) == {later: 1.0}
    restore(palace.ledger, id_=first)
    settled(palace)
    assert stored(palace) == {first: 1.0, later: 0.0}, "restoring changed who was first"


def test_hidden_drawers_make_no_ordinary_one_stale(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves at nine\n"], path="tool", kind="tool")
    file(palace.ledger, ["the ferry leaves at nine\n"], path="a.md")
    file(palace.ledger, ["the ferry leaves at nine\n"], path="again", kind="tool")
    settled(palace)
    assert [stored(palace)[id_] for id_ in ids(palace, "the ferry leaves at nine\n")] == [1.0, 1.0, 0.0]


def test_a_large_source_that_is_completed_late_was_filed_early(palace: Palace) -> None:
    filing = Filing(palace.ledger, Place("file:big", "file", "big", "big", "w", "r"), 0)
    with palace.ledger.write() as cx:
        filing.stage(cx, chunks(["dock and crane\n"]), "test")
    file(palace.ledger, ["dock and crane\n", "dock and boat\n"], path="b.md")
    settled(palace)
    with palace.ledger.write() as cx:
        filing.complete(cx, Version(b"", 0, "", "", "utf-8", 0, "test"))
    settled(palace)
    assert [stored(palace)[id_] for id_ in ids(palace, "dock and crane\n")] == [1.0, 0.0]


def test_moving_a_wing_scores_nothing_again(palace: Palace) -> None:
    file(palace.ledger, some_texts(1, 9))
    settled(palace)
    rename_wing(palace.ledger, "wing", "other")
    assert update(palace).scored == 0
    settled(palace)


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
def test_in_whatever_steps_the_scores_are_those_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    palace = Palace(tmp_path_factory.mktemp("p") / "palace", create=True, embedder="fake")
    try:
        for number, step in enumerate(steps):
            act(palace, number, random.Random(step))
        settled(palace)
        with palace.ledger.write() as cx:
            store.start_over(cx, Watermark(palace.ledger.lineage(0), 0))
        settled(palace)
    finally:
        palace.close()


def act(palace: Palace, number: int, chosen: random.Random) -> None:
    """Do one of the things that change a palace, and perhaps score afterwards."""
    with palace.ledger.read() as cx:
        rows = cx.execute(select(drawers.c.id, drawers.c.state)).all()
    current = [row.id for row in rows if row.state == "current"]
    forgotten = [row.id for row in rows if row.state == "forgotten"]
    texts = some_texts(chosen.randrange(1000), chosen.randint(1, 6))
    match chosen.randrange(5):
        case 0 if current:
            forget(palace.ledger, id_=chosen.choice(current), actor="anna")
        case 1 if forgotten:
            restore(palace.ledger, id_=chosen.choice(forgotten))
        case 2 if number:
            revise(palace, texts)
        case _:
            file(palace.ledger, texts, path=f"{number}.md", kind=chosen.choice(["file", "file", "tool"]))
    match chosen.randrange(3):
        case 0:
            backfill(palace)
        case 1:
            catch_up_vectors(palace)
            update(palace, deadline=time.monotonic() + chosen.choice([0.0, 0.02, 5.0]))
        case _:
            update(palace)


def revise(palace: Palace, texts: list[str]) -> None:
    with palace.ledger.read() as cx:
        from castle.store.schema import sources

        known = cx.execute(select(sources.c.path, sources.c.revision)).first()
    if known is not None:
        file(palace.ledger, texts, path=known.path, base=known.revision)


@pytest.mark.usefixtures("small_blocks")
def test_an_interrupted_run_keeps_what_it_has_and_the_next_one_goes_on(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(palace.ledger, some_texts(2, 14))
    catch_up_vectors(palace)

    def interrupt(_phase: str, done: int, _total: int) -> None:
        if done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update(palace, progress=interrupt)
    assert len(stored(palace)) == 6
    seen: list[tuple[str, int, int]] = []
    report = update(palace, progress=lambda *step: seen.append(step))
    assert (report.scored, report.pending) == (8, 0)
    assert seen[-1] == ("novelty", 8, 8)
    settled(palace)


@pytest.mark.usefixtures("small_blocks")
def test_time_that_is_up_leaves_the_rest_pending(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    file(palace.ledger, some_texts(3, 14))
    catch_up_vectors(palace)
    assert update(palace, deadline=time.monotonic() - 1).reason == TIME_IS_UP
    clock, looks = time.monotonic, iter([0.0] * 40)
    monkeypatch.setattr(time, "monotonic", lambda: next(looks, 100.0))
    report = update(palace, deadline=50.0)
    assert report.reason == TIME_IS_UP
    assert 0 < report.scored < 14
    assert report.pending == 14 - report.scored
    monkeypatch.setattr(time, "monotonic", clock)
    settled(palace)


def test_drawers_without_a_vector_wait(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n"], path="a.md")
    catch_up_vectors(palace)
    file(palace.ledger, ["the ferry leaves\n", "gulls\n"], path="b.md")
    with palace.ledger.write() as cx:
        gull = cx.execute(select(novelty.c.input)).all()
        assert gull == []
    report = update(palace)
    assert (report.scored, report.pending, report.reason) == (2, 1, NO_VECTORS)
    settled(palace)


def test_a_damaged_vector_is_compared_with_when_it_has_been_made_again(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n", "the ferry returns\n"])
    catch_up_vectors(palace)
    with palace.ledger.write() as cx:
        good = cx.execute(select(cache)).all()
        backfill_row = good[0]
        for blob in (b"short", bytes(128), b"\xff" * 128):
            set_vector(cx, backfill_row.input, blob)
    report = update(palace)
    assert (report.scored, report.pending, report.reason) == (1, 1, NO_VECTORS)
    assert len(stored(palace)) == 1
    with palace.ledger.write() as cx:
        set_vector(cx, backfill_row.input, backfill_row.vector)
    settled(palace)


def set_vector(cx: Connection, key: bytes, blob: bytes) -> None:
    cx.execute(cache.update().where(cache.c.input == key).values(vector=blob))


def test_another_embedder_makes_every_score_anew(palace: Palace) -> None:
    file(palace.ledger, some_texts(4, 6))
    settled(palace)
    before = stored(palace)
    with palace.ledger.write() as cx:
        set_value(cx, "embedder", to_json({"name": "fake", "dim": 8, "identity": "other@1"}))
    assert stored(palace) == {}
    again = Palace(palace.root)
    report = update(again)
    assert (report.scored, report.pending, report.reason) == (0, 6, NO_VECTORS)
    make_vectors(again, "other@1")
    assert update(again).scored == 6
    assert stored(again) == pytest.approx(expected(again), abs=2e-6)
    assert stored(again) != before
    again.close()


def make_vectors(palace: Palace, identity: str) -> None:
    from castle.store.catchup import input_hash

    with palace.ledger.write() as cx:
        for number, row in enumerate(changed_rows(cx, 0, 1000)):
            vector = np.random.default_rng(number).standard_normal(8).astype(np.float16)
            values = {"embedder": identity, "input": input_hash(row), "vector": vector.tobytes()}
            cx.execute(cache.insert().prefix_with("OR REPLACE").values(values))


def test_a_mark_from_another_history_starts_over(palace: Palace) -> None:
    file(palace.ledger, some_texts(5, 6))
    settled(palace)
    with palace.ledger.write() as cx:
        store.reach(cx, Watermark("another epoch:token", 3))
    assert update(palace).scored == 6
    settled(palace)


def test_a_destroyed_drawer_takes_its_score_along_and_others_wait(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n"], path="a.md")
    file(palace.ledger, ["the ferry leaves\n"], path="b.md")
    settled(palace)
    first, later = ids(palace, "the ferry leaves\n")
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
        rid = cx.execute(select(drawers.c.rid).where(drawers.c.id == first)).scalar_one()
        cx.exec_driver_sql("DELETE FROM membership WHERE drawer = ?", (rid,))
        cx.execute(delete(drawers).where(drawers.c.rid == rid))
    assert stored(palace) == {}
    update(palace)
    assert stored(palace) == {later: 1.0}


def test_only_one_process_works_at_a_time(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n"])
    catch_up_vectors(palace)
    other = palace.lock("novelty")
    assert other.try_acquire()
    report = update(palace, deadline=time.monotonic() + 5)
    assert (report.scored, report.pending, report.reason) == (0, 1, "another process is at it")
    other.release()
    assert update(palace).scored == 1


def test_a_palace_that_cannot_be_written_is_read_all_the_same(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(palace.ledger, ["the ferry leaves\n"])
    settled(palace)
    before = stored(palace)
    file(palace.ledger, ["gulls\n"], path="b.md")
    monkeypatch.setattr(palace.ledger, "read_only", True)
    with pytest.raises(PalaceError, match="read-only"):
        update(palace)
    refresh(palace, 1.0)
    assert stored(palace) == before


def test_a_palace_from_before_there_was_novelty(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n"])
    catch_up_vectors(palace)
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("DROP TABLE novelty")
        assert store.scores(cx, ["x"]) == {}
        assert store.counts(cx) == (1, 0)
        set_value(cx, "schema_version", "1")
    palace.close()
    again = Palace(palace.root)
    settled(again)
    again.close()


def nothing() -> bool:
    return False


@pytest.mark.parametrize("neighbours", [2, 256])
def test_a_hurried_run_in_a_large_palace_asks_the_table(
    palace: Palace, monkeypatch: pytest.MonkeyPatch, neighbours: int
) -> None:
    monkeypatch.setattr(scoring, "EXACT_DRAWERS", 3)
    monkeypatch.setattr(scoring, "FEW", 4)
    monkeypatch.setattr(nearby, "_NEIGHBOURS", neighbours)
    asked: list[Callable[[], bool]] = []
    compare = nearby.Nearby.compare

    def counted(self: nearby.Nearby, rids: list[int], overdue: Callable[[], bool]) -> object:
        asked.append(overdue)
        return compare(self, rids, overdue)

    monkeypatch.setattr(nearby.Nearby, "compare", counted)
    texts = some_texts(6, 10)
    file(palace.ledger, texts[:6], path="a.md")
    file(palace.ledger, texts[6:8], path="tool", kind="tool")
    file(palace.ledger, texts, path="b.md")
    catch_up_vectors(palace)
    report = update(palace, deadline=time.monotonic() + 60)
    assert (report.scored, report.pending) == (18, 0)
    assert len(asked) == 18
    assert stored(palace) == pytest.approx(expected(palace), abs=2e-6)
    first = ids(palace, texts[0])[0]
    forget(palace.ledger, id_=first, actor="anna")
    update(palace, deadline=time.monotonic() + 60)
    restore(palace.ledger, id_=first)
    catch_up_vectors(palace)
    update(palace, deadline=time.monotonic() + 60)
    if neighbours == 256:
        ordinary = set(ids(palace, *texts)) - set(ids(palace, *texts[6:8]))
        scores, should = stored(palace), expected(palace)
        assert {id_: scores[id_] for id_ in ordinary} == pytest.approx(
            {id_: should[id_] for id_ in ordinary}, abs=2e-6
        )


def test_a_few_that_came_last_are_scored_without_reading_the_palace(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(palace.ledger, some_texts(7, 30), path="a.md")
    settled(palace)
    file(palace.ledger, [*some_texts(7, 2), "xylophone\n", "xylophone gull\n"], path="b.md")
    catch_up_vectors(palace)
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "Blocks", None)
        assert update(palace).scored == 4
    assert stored(palace) == pytest.approx(expected(palace), abs=2e-6)
    forget(palace.ledger, id_=ids(palace, some_texts(7, 1)[0])[0], actor="anna")
    settled(palace)


def test_a_few_that_others_came_after_correct_those(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "_NEIGHBOURS", 1)
    file(palace.ledger, ["anchor boat crane dock\n", "anchor boat crane eel\n", "eel crane\n"])
    (restored,) = ids(palace, "anchor boat crane eel\n")
    forget(palace.ledger, id_=restored, actor="anna")
    settled(palace)
    restore(palace.ledger, id_=restored)
    settled(palace)


def test_a_table_of_vectors_that_is_late_is_not_asked(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(palace.ledger, ["the ferry leaves\n", "gulls\n"], path="a.md")
    settled(palace)
    palace.vectors.reset()
    file(palace.ledger, ["gulls\n"], path="b.md")
    assert update(palace).pending == 0
    assert stored(palace) == pytest.approx(expected(palace), abs=2e-6)
    file(palace.ledger, ["gulls\n"], path="c.md")
    monkeypatch.setattr(scoring, "EXACT_DRAWERS", 1)
    report = update(palace, deadline=time.monotonic() + 60)
    assert (report.pending, report.reason) == (1, NO_VECTORS)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM novelty WHERE drawer % 2 = 0",
        "DELETE FROM novelty",
        "UPDATE novelty SET score = 'abc'",
        "UPDATE novelty SET input = x'00'",
        "UPDATE meta SET value = 'garbage' WHERE key = 'novelty'",
        "UPDATE meta SET value = '[1]' WHERE key = 'novelty'",
    ],
)
def test_damaged_scores_are_made_again(palace: Palace, harm: str) -> None:
    file(palace.ledger, [f"harbour number {n}" for n in range(12)])
    assert backfill(palace).complete
    before = stored(palace)
    with palace.ledger.write() as cx:
        cx.exec_driver_sql(harm)
    report = backfill(palace)
    assert report.complete, report.reason
    assert stored(palace) == before
