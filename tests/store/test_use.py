from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

from castle.errors import NotFoundError, RefusedError
from castle.records import Scope
from castle.store import use
from castle.store.ledger import Ledger, get_value, set_value, to_json
from castle.store.novelty_tables import META_KEY, novelty
from castle.store.palace import Palace
from castle.store.places import forget, restore
from castle.store.reading import listed
from castle.store.use_tables import NOVEL, RECENT
from tests.store.filer import file


def ids(ledger: Ledger) -> list[str]:
    with ledger.read() as cx:
        return [drawer.id for drawer in listed(cx, Scope(), 1000, 0)[1]]


def plans(cx: Connection, statements: list[str]) -> list[str]:
    """Return how SQLite goes about statements that were recorded with their values in place."""
    return [row.detail for one in statements for row in cx.execute(text(f"EXPLAIN QUERY PLAN {one}"))]


def test_a_pin_stays_until_it_is_taken_away(palace: Palace) -> None:
    file(palace.ledger, ["one\n", "two\n", "three\n"], wing="shop")
    first, second, _ = ids(palace.ledger)
    head = palace.ledger.head()
    assert use.pin(palace.ledger, first[:8], "ann") == (first, True)
    assert use.pin(palace.ledger, second, "bob") == (second, True)
    assert use.pin(palace.ledger, first, "eve") == (first, False)
    with palace.ledger.read() as cx:
        assert [(pin.id, pin.pinned_by) for pin in use.pinned(cx)] == [(second, "bob"), (first, "ann")]
        assert [pin.id for pin in use.pinned(cx, "shop")] == [second, first]
        assert use.pinned(cx, "other") == []
    assert use.unpin(palace.ledger, first) == (first, True)
    assert use.unpin(palace.ledger, first) == (first, False)
    with palace.ledger.read() as cx:
        assert [pin.id for pin in use.pinned(cx)] == [second]
    assert palace.ledger.head() == head


def test_only_what_would_be_shown_is_pinned(palace: Palace) -> None:
    file(palace.ledger, ["old\n", "kept\n"])
    old, kept = ids(palace.ledger)
    file(palace.ledger, ["kept\n"], base=1)
    with pytest.raises(RefusedError, match="superseded"):
        use.pin(palace.ledger, old, "ann")
    use.pin(palace.ledger, kept, "ann")
    forget(palace.ledger, id_=kept, actor="ann")
    with pytest.raises(RefusedError, match=f"castle restore {kept}"):
        use.pin(palace.ledger, kept, "ann")
    with palace.ledger.read() as cx:
        assert [pin.id for pin in use.pinned(cx)] == [kept]
        assert use.pinned_rids(cx, None) == {}
    restore(palace.ledger, id_=kept)
    with palace.ledger.read() as cx:
        assert len(use.pinned_rids(cx, "wing")) == 1
        assert use.pinned_rids(cx, "other") == {}
    with pytest.raises(NotFoundError):
        use.pin(palace.ledger, "abcdef0123", "ann")


def test_uses_add_up_and_are_written_now_and_then(palace: Palace) -> None:
    file(palace.ledger, ["one\n", "two\n"])
    first, second = ids(palace.ledger)
    uses = use.Uses(seconds=1000.0)
    for id_ in (second, first, second, "f" * 24):
        uses.add(palace.ledger, id_)
    with palace.ledger.read() as cx:
        assert use.uses_of(cx, [1, 2]) == {}
    uses.flush(palace.ledger)
    uses.flush(palace.ledger)
    use.Uses(seconds=0.0).add(palace.ledger, second)
    with palace.ledger.read() as cx:
        assert use.uses_of(cx, [1, 2]) == {1: 1, 2: 3}
        assert use.most_used(cx, None, 10) == [2, 1]
        assert use.most_used(cx, "wing", 1) == [2]
        assert use.most_used(cx, "other", 10) == []


def test_a_busy_palace_keeps_the_uses_for_later(palace: Palace) -> None:
    file(palace.ledger, ["one\n"])
    uses = use.Uses(seconds=1000.0)
    uses.add(palace.ledger, ids(palace.ledger)[0])
    other = sqlite3.connect(palace.ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    uses.flush(palace.ledger)
    other.execute("ROLLBACK")
    other.close()
    uses.flush(palace.ledger)
    with palace.ledger.read() as cx:
        assert use.uses_of(cx, [1]) == {1: 1}


def test_a_read_only_palace_counts_nothing_and_says_nothing(palace: Palace) -> None:
    file(palace.ledger, ["one\n"])
    uses = use.Uses(seconds=0.0)
    palace.ledger.read_only = True
    uses.add(palace.ledger, ids(palace.ledger)[0])
    palace.ledger.read_only = False
    uses.flush(palace.ledger)
    with palace.ledger.read() as cx:
        assert use.uses_of(cx, [1]) == {}


def test_rooms_come_by_their_newest_drawer_and_drawers_by_their_time(palace: Palace) -> None:
    file(palace.ledger, ["a\n"], path="a", wing="w1", room="r1", authored_at=50)
    file(palace.ledger, ["b\n", "c\n"], path="b", wing="w1", room="r2", authored_at=70)
    file(palace.ledger, ["d\n"], path="d", wing="w2", room="r1", authored_at=60)
    file(palace.ledger, ["e\n"], path="e", wing="w2", room="r9", authored_at=99, kind="tool")
    file(palace.ledger, ["f\n"], path="f", wing="w1", room="r2", authored_at=40)
    with palace.ledger.read() as cx:
        rooms = [(room.wing, room.room, room.newest) for room in use.recent_rooms(cx, None, 9)]
        assert rooms == [("w1", "r2", 70), ("w2", "r1", 60), ("w1", "r1", 50)]
        assert [room.room for room in use.recent_rooms(cx, "w1", 1)] == ["r2"]
        assert use.recent_rooms(cx, "w3", 9) == []
        assert use.newest_of_room(cx, "w1", "r2", 2) == [3, 2]
        total, page = use.newest(cx, None, None, 2, 1)
        assert (total, page) == (5, [ids(palace.ledger)[1], ids(palace.ledger)[3]])
        assert use.newest(cx, "w1", "r2", 9, 0)[0] == 3
        assert use.newest(cx, "w2", "r9", 9, 0) == (0, [])


def test_the_most_novel_are_those_with_the_highest_scores_that_hold(palace: Palace) -> None:
    file(palace.ledger, ["a\n", "b\n", "c\n"], path="a", wing="w1")
    file(palace.ledger, ["d\n"], path="d", wing="w2")
    with palace.ledger.write() as cx:
        rows = [(1, 0.4), (2, 0.9), (3, None), (4, 0.7)]
        cx.execute(
            novelty.insert(), [{"drawer": rid, "input": b"x" * 32, "score": score} for rid, score in rows]
        )
    with palace.ledger.read() as cx:
        assert use.most_novel(cx, None, 9) == []
    with palace.ledger.write() as cx:
        identity = palace.identity.identity
        assert get_value(cx, META_KEY) is None
        set_value(cx, META_KEY, to_json({"embedder": identity, "epoch": "e", "seq": 0}))
    with palace.ledger.read() as cx:
        assert use.most_novel(cx, None, 9) == [2, 4, 1]
        assert use.most_novel(cx, "w1", 1) == [2]


def test_nothing_that_ranks_looks_at_all_drawers(palace: Palace) -> None:
    file(palace.ledger, ["a\n", "b\n"])
    statements: list[str] = []

    def note(_c: object, _u: object, statement: str, parameters: object, *_: object) -> None:
        for value in parameters if isinstance(parameters, tuple) else ():
            statement = statement.replace("?", repr(value), 1)
        if "FROM drawers" in statement or "JOIN drawers" in statement:
            statements.append(statement)

    with palace.ledger.write() as cx:
        set_value(cx, META_KEY, to_json({"embedder": palace.identity.identity}))
    with palace.ledger.read() as cx:
        event.listen(cx.engine, "before_cursor_execute", note)
        for wing in (None, "wing"):
            use.recent_rooms(cx, wing, 5)
            use.newest_of_room(cx, "wing", "general", 5)
            use.newest(cx, wing, None, 5, 0)
            use.most_used(cx, wing, 5)
            use.most_novel(cx, wing, 5)
            use.pinned_rids(cx, wing)
        event.remove(cx.engine, "before_cursor_execute", note)
        steps = plans(cx, statements)
    assert len(statements) >= 12
    assert any(RECENT in step for step in steps)
    assert any(NOVEL in step for step in steps)
    whole = [step for step in steps if step.startswith("SCAN drawers")]
    assert all(step == f"SCAN drawers USING INDEX {RECENT}" for step in whole)


def test_a_read_only_palace_from_before_has_no_pins_and_its_drawers(palace: Palace) -> None:
    file(palace.ledger, ["a\n"], authored_at=5)
    with palace.ledger.write() as cx:
        for statement in (
            "DROP TABLE pins",
            "DROP TABLE uses",
            f"DROP INDEX {RECENT}",
            f"DROP INDEX {NOVEL}",
        ):
            cx.exec_driver_sql(statement)
    with palace.ledger.read() as cx:
        assert use.pinned(cx) == []
        assert use.pinned_rids(cx, None) == use.uses_of(cx, [1]) == {}
        assert use.most_used(cx, None, 5) == use.most_novel(cx, None, 5) == []
        assert [room.newest for room in use.recent_rooms(cx, None, 5)] == [5]
        assert use.newest(cx, None, None, 5, 0)[0] == 1


def test_a_palace_from_before_gets_the_tables_when_it_is_opened(palace: Palace, tmp_path: Path) -> None:
    file(palace.ledger, ["a\n"])
    with palace.ledger.write() as cx:
        for statement in ("DROP TABLE pins", f"DROP INDEX {RECENT}"):
            cx.exec_driver_sql(statement)
        set_value(cx, "schema_version", "1")
    again = Ledger(palace.root)
    use.pin(again, ids(again)[0], "ann")
    with again.read() as cx:
        assert cx.execute(text("SELECT 1 FROM sqlite_master WHERE name = :n"), {"n": RECENT}).first()
    again.close()
