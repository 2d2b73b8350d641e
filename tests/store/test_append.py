from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, func, select, update

from castle.errors import CastleError
from castle.records import Chunk, Drawer, Finding, Scope
from castle.store import verify as verification
from castle.store.appending import Tail, repeats, tail_of
from castle.store.filing import Filed, Filing, NewDrawer, OvertakenError, Place, Version, end_source
from castle.store.ledger import Ledger, run_many
from castle.store.palace import Palace
from castle.store.places import forget, rename_wing
from castle.store.reading import changed_rows, listed, members, neighbours
from castle.store.schema import drawers, membership, revisions, sources
from tests.conftest import TurnedClock
from tests.store.filer import file

KEY = "session:one"


@pytest.fixture
def ledger(palace: Palace) -> Ledger:
    return palace.ledger


def drawer(text: str, *, message: str = "", room: str = "", raw: bytes | None = None) -> NewDrawer:
    chunk = Chunk(text, 900, 901, 7, 8)
    return NewDrawer(chunk, raw, "general", "message", "", 0, message_id=message, room=room)


def revision_of(ledger: Ledger, key: str = KEY) -> int:
    with ledger.read() as cx:
        return cx.execute(select(sources.c.revision).where(sources.c.key == key)).scalar() or 0


def append(
    ledger: Ledger,
    items: Sequence[NewDrawer | str],
    *,
    base: int | None = None,
    key: str = KEY,
    wing: str = "wing",
    signature: str = "s",
    retire: Sequence[int] = (),
) -> Filed:
    """Append to the source in one transaction, as a miner does; ``retire`` are ordinals among its members."""
    place = Place(key, "session", key, key, wing, "general")
    filing = Filing(ledger, place, revision_of(ledger, key) if base is None else base, append=True)
    new = [drawer(item) if isinstance(item, str) else item for item in items]
    with ledger.write() as cx:
        filing.stage(cx, new, "test")
        if retire:
            query = select(membership.c.drawer).where(
                membership.c.source == select(sources.c.id).where(sources.c.key == key).scalar_subquery(),
                membership.c.to_revision.is_(None),
            )
            rids = [rid for (rid,) in cx.execute(query.order_by(membership.c.ordinal))]
            filing.retire(cx, [rids[n] for n in retire])
        return filing.complete(cx, Version(b"", 0, signature, "test/1", "utf-8", 0, "test"))


def held(ledger: Ledger, revision: int | None = None, key: str = KEY) -> list[Drawer]:
    with ledger.read() as cx:
        return [member for member, _ in members(cx, key, revision)]


def texts(ledger: Ledger, revision: int | None = None, key: str = KEY) -> list[str]:
    return [member.text for member in held(ledger, revision, key)]


def sources_finding(palace: Palace) -> Finding:
    return next(f for f in verification.verify(palace) if f.check == "sources")


def test_what_is_appended_follows_what_was_there(ledger: Ledger) -> None:
    assert append(ledger, ["one", "two"]) == Filed("new", 1, 2, 0)
    assert append(ledger, ["three"]) == Filed("changed", 2, 1, 2)
    assert texts(ledger) == ["one", "two", "three"]
    assert texts(ledger, 1) == ["one", "two"]


def test_ordinals_and_offsets_go_on_and_lines_are_the_callers(ledger: Ledger) -> None:
    append(ledger, ["one", "two"])
    append(ledger, ["three", "four"])
    with ledger.read() as cx:
        rows = list(cx.execute(select(membership).order_by(membership.c.ordinal)))
    assert [(row.ordinal, row.start, row.end) for row in rows] == [
        (0, 0, 3),
        (1, 3, 6),
        (2, 6, 11),
        (3, 11, 15),
    ]
    assert {(row.first_line, row.last_line) for row in rows} == {(7, 8)}


def test_only_the_new_membership_is_written(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    append(ledger, [f"message {n}" for n in range(40)])
    before = ledger.head()
    written: list[int] = []

    def count(cx: Connection, statement: str, rows: Iterable[Sequence[object]]) -> None:
        listed_rows = list(rows)
        written.append(len(listed_rows))
        run_many(cx, statement, listed_rows)

    monkeypatch.setattr("castle.store.members.run_many", count)
    append(ledger, ["one more"])
    assert written == [1]
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(membership)).scalar() == 41
        assert [row.text for row in changed_rows(cx, before, 100)] == ["one more"]


def test_a_text_said_again_is_a_drawer_of_its_own(ledger: Ledger) -> None:
    append(ledger, [drawer("ok", message="m1"), drawer("ok", message="m2")])
    append(ledger, [drawer("ok", message="m3"), drawer("no", message="m4"), drawer("ok", message="m5")])
    found = held(ledger)
    assert [member.message_id for member in found] == ["m1", "m2", "m3", "m4", "m5"]
    assert len({member.id for member in found}) == 5


def test_appending_gives_the_ids_that_filing_at_once_gives(ledger: Ledger) -> None:
    append(ledger, ["a", "b"])
    append(ledger, ["a", "a"])
    piecewise = [member.id for member in held(ledger)]
    Palace(ledger.root.parent / "other", create=True, embedder="fake").close()
    other = Ledger(ledger.root.parent / "other")
    append(other, ["a", "b", "a", "a"])
    assert [member.id for member in held(other)] == piecewise


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "append", "retire", "whole"]),
            st.lists(st.sampled_from(["a", "b", "ab", "ä"]), max_size=4),
        ),
        max_size=7,
    )
)
def test_any_history_verifies_and_reads_back_as_it_was(steps: list[tuple[str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        palace = Palace(Path(directory), create=True, embedder="fake")
        key = "file:notes.md"
        now: list[str] = []
        states: dict[int, list[str]] = {}
        for how, part in steps:
            base = revision_of(palace.ledger, key)
            if how == "whole":
                filed = file(palace.ledger, part, base=base)
                now = list(part)
            elif how == "retire" and now:
                filed = append(palace.ledger, list(part), key=key, retire=[len(now) // 2])
                now = [*now[: len(now) // 2], *now[len(now) // 2 + 1 :], *part]
            else:
                filed = append(palace.ledger, list(part), key=key)
                now = [*now, *part]
            states[filed.revision] = now
            assert filed.kept <= len(now)
        for number, state in states.items():
            assert texts(palace.ledger, number, key) == state
        assert sources_finding(palace).status == "ok"
        palace.close()


def test_a_drawer_that_is_retired_is_superseded_and_the_rest_stays(palace: Palace) -> None:
    ledger = palace.ledger
    append(ledger, [drawer("Hel", message="m1"), drawer("ok", message="m2"), drawer("Hel", message="m3")])
    filed = append(ledger, [drawer("Hello", message="m1")], retire=[0])
    assert (filed.new, filed.kept, filed.superseded) == (1, 2, 1)
    assert [d.message_id for d in held(ledger)] == ["m2", "m3", "m1"]
    append(ledger, [drawer("Hel", message="m4")])
    assert [(d.text, d.message_id) for d in held(ledger)][-1] == ("Hel", "m4")
    assert [d.message_id for d in held(ledger, 1)] == ["m1", "m2", "m3"]
    with ledger.read() as cx:
        gone = [d for d in listed(cx, Scope(history=True), 10, 0)[1] if d.state == "superseded"]
    assert [d.message_id for d in gone] == ["m1"]
    assert sources_finding(palace).status == "ok"


def test_only_drawers_the_source_holds_can_leave_it(ledger: Ledger) -> None:
    append(ledger, ["a"])
    append(ledger, ["b"], key="session:two")
    filing = Filing(ledger, Place(KEY, "session", KEY, KEY, "wing", "general"), 1, append=True)
    with ledger.write() as cx:
        assert filing.retire(cx, [2, 99]) == 0
    whole = Filing(ledger, Place(KEY, "session", KEY, KEY, "wing", "general"), 1)
    with pytest.raises(ValueError, match="whole"), ledger.write() as cx:
        whole.retire(cx, [1])


def test_several_stages_are_one_revision(ledger: Ledger) -> None:
    append(ledger, ["x"])
    filing = Filing(ledger, Place(KEY, "session", KEY, KEY, "wing", "general"), 1, append=True)
    for batch in (["x", "y"], ["x"]):
        with ledger.write() as cx:
            filing.stage(cx, [drawer(text) for text in batch], "test")
        assert texts(ledger) == ["x"]
    with ledger.write() as cx:
        filing.complete(cx, Version(b"", 0, "", "test/1", "utf-8", 0, "test"))
    assert texts(ledger) == ["x", "x", "y", "x"]
    with ledger.read() as cx:
        query = select(membership.c.start, membership.c.end).order_by(membership.c.ordinal)
        assert [tuple(row) for row in cx.execute(query)] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_an_append_that_was_broken_off_leaves_no_trace_in_the_next(palace: Palace) -> None:
    ledger = palace.ledger
    append(ledger, ["first"])
    filing = Filing(ledger, Place(KEY, "session", KEY, KEY, "wing", "general"), 1, append=True)
    with ledger.write() as cx:
        filing.stage(cx, [drawer("ok", message="lost"), drawer("never came")], "test")
    append(ledger, [drawer("ok", message="kept")])
    assert [(member.text, member.message_id) for member in held(ledger)] == [("first", ""), ("ok", "kept")]
    with ledger.read() as cx:
        assert listed(cx, Scope(), 10, 0)[0] == 2
    assert sources_finding(palace).status == "ok"


def test_two_writers_of_one_source_never_mix(ledger: Ledger) -> None:
    append(ledger, ["a"])
    append(ledger, ["b"])
    with pytest.raises(OvertakenError):
        append(ledger, ["c"], base=1)
    assert texts(ledger) == ["a", "b"]


def test_nothing_appended_makes_no_revision_and_notes_the_signature(ledger: Ledger) -> None:
    append(ledger, ["a"])
    head = ledger.head()
    assert append(ledger, [], signature="later") == Filed("unchanged", 1, 0, 1)
    assert ledger.head() == head
    with ledger.read() as cx:
        row = cx.execute(select(sources)).one()
    assert (row.revision, row.signature) == (1, "later")


def test_an_empty_source_may_grow_later(palace: Palace) -> None:
    assert append(palace.ledger, []) == Filed("new", 1, 0, 0)
    append(palace.ledger, ["a"])
    append(palace.ledger, ["b"])
    assert texts(palace.ledger) == ["a", "b"]
    assert sources_finding(palace).status == "ok"


def test_a_whole_revision_can_be_appended_to_and_replaced_again(palace: Palace) -> None:
    ledger = palace.ledger
    key = "file:notes.md"
    file(ledger, ["a\n", "b\n", "c\n"])
    file(ledger, ["a\n", "x\n", "c\n"], base=1)
    append(ledger, ["x\n", "d\n"], key=key)
    append(ledger, ["e\n"], key=key)
    file(ledger, ["a\n", "e\n"], base=4)
    append(ledger, ["x\n"], key=key)
    assert [texts(ledger, n, key) for n in range(2, 7)] == [
        ["a\n", "x\n", "c\n"],
        ["a\n", "x\n", "c\n", "x\n", "d\n"],
        ["a\n", "x\n", "c\n", "x\n", "d\n", "e\n"],
        ["a\n", "e\n"],
        ["a\n", "e\n", "x\n"],
    ]
    assert sources_finding(palace).status == "ok"


def test_a_source_that_was_gone_grows_from_nothing(palace: Palace) -> None:
    ledger = palace.ledger
    append(ledger, ["a"])
    with ledger.write() as cx:
        end_source(cx, ledger, 1, "test")
    append(ledger, ["b"])
    assert texts(ledger) == ["b"]
    append(ledger, ["a"])
    assert texts(ledger) == ["b", "a"]
    with ledger.read() as cx:
        assert listed(cx, Scope(history=True), 10, 0)[0] == 3
    assert sources_finding(palace).status == "ok"


def test_forgotten_members_stay_members(palace: Palace) -> None:
    ledger = palace.ledger
    append(ledger, ["a", "a"])
    forget(ledger, id_=held(ledger)[1].id, actor="test")
    append(ledger, ["a"])
    assert [member.state for member in held(ledger)] == ["current", "forgotten", "current"]
    assert sources_finding(palace).status == "ok"


def test_bytes_that_are_not_text_are_chained_as_they_were(palace: Palace) -> None:
    append(palace.ledger, [drawer("caf\ufffd", raw=b"caf\xe9")])
    append(palace.ledger, ["x"])
    with palace.ledger.read() as cx:
        sizes = [size for (size,) in cx.execute(select(revisions.c.size).order_by(revisions.c.number))]
    assert sizes == [4, 5]
    assert sources_finding(palace).status == "ok"


@pytest.mark.parametrize("lost", ["text", "member", "early member"])
def test_verification_sees_what_an_appended_source_lost(palace: Palace, lost: str) -> None:
    ledger = palace.ledger
    append(ledger, ["a", "b"])
    append(ledger, ["c"])
    append(ledger, ["d"])
    with ledger.write() as cx:
        if lost == "text":
            cx.execute(update(drawers).where(drawers.c.text == "c").values(text="C"))
        else:
            ordinal = 0 if lost == "early member" else 2
            cx.execute(update(membership).where(membership.c.ordinal == ordinal).values(to_revision=3))
    finding = sources_finding(palace)
    assert finding.status == "failed"
    assert KEY in finding.detail


def test_each_drawer_stays_in_its_own_room_when_the_wing_moves(ledger: Ledger) -> None:
    append(ledger, [drawer("a", room="backend"), drawer("b")])
    append(ledger, [drawer("c", room="frontend")], wing="other")
    assert [(d.wing, d.room) for d in held(ledger)] == [
        ("other", "backend"),
        ("other", "general"),
        ("other", "frontend"),
    ]
    rename_wing(ledger, "other", "third")
    append(ledger, ["d"], wing="third")
    assert [d.room for d in held(ledger)] == ["backend", "general", "frontend", "general"]


def test_neighbours_reach_across_appended_revisions(ledger: Ledger) -> None:
    for text in ("a", "b", "c"):
        append(ledger, [text])
    with ledger.read() as cx:
        around = neighbours(cx, held(ledger)[1].id, 1)
    assert [d.text for d, _ in around] == ["a", "b", "c"]


def test_as_of_shows_the_source_as_it_had_grown(ledger: Ledger, clock: TurnedClock) -> None:
    append(ledger, ["a"])
    between = clock()
    append(ledger, ["b"])
    with ledger.read() as cx:
        assert [d.text for d in listed(cx, Scope(as_of=between), 10, 0)[1]] == ["a"]


def test_looking_for_the_end_and_for_repeats_reads_no_old_members(ledger: Ledger) -> None:
    """The plans use an index on what is looked for, however many members there are."""
    for n in range(3):
        append(ledger, [str(n)])
    plans: list[str] = []

    def explain(_c: object, cursor: object, statement: str, parameters: object, _x: object, _m: bool) -> None:
        if statement.startswith("SELECT"):
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[attr-defined]
            plans.extend(row[3] for row in cursor.fetchall())  # type: ignore[attr-defined]

    event.listen(ledger._engine, "before_cursor_execute", explain)
    with ledger.read() as cx:
        assert tail_of(cx, 1, 3) == Tail(3, 3, tail_of(cx, 1, 3).digest, 3)
        repeats(cx, 1, [b"x", b"y"])
    assert any("ix_drawers_sha256" in plan for plan in plans)
    assert not any("SCAN" in plan or "TEMP B-TREE FOR ORDER" in plan for plan in plans)


def test_an_error_while_completing_appends_nothing(ledger: Ledger) -> None:
    append(ledger, ["a"])
    filing = Filing(ledger, Place(KEY, "session", KEY, KEY, "wing", "general"), 1, append=True)
    with pytest.raises(CastleError), ledger.write() as cx:
        filing.stage(cx, [drawer("b")], "test")
        filing.complete(cx, Version(b"", 0, "", "test/1", "utf-8", 0, "test"))
        raise CastleError("broken off")
    assert texts(ledger) == ["a"]
    assert append(ledger, ["b"]).new == 1
