from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from castle.records import Scope
from castle.store.filing import Filing, OvertakenError, Place, drawer_id
from castle.store.ledger import Ledger
from castle.store.reading import changed_rows, listed, members
from castle.store.schema import drawers, membership
from tests.store.filer import chunks, file

CURRENT = Scope()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "p", create=True)


def texts_of(ledger: Ledger, scope: Scope = CURRENT) -> list[str]:
    with ledger.read() as cx:
        return [drawer.text for drawer in listed(cx, scope, 1000, 0)[1]]


def test_ids_depend_on_source_content_and_repetition_without_running_together() -> None:
    ids = {
        drawer_id("foo", b"12", 0),
        drawer_id("foo1", b"2", 0),
        drawer_id("foo", b"12", 1),
        drawer_id("foo", b"1", 2),
    }
    assert len(ids) == 4
    assert all(len(id_) == 24 for id_ in ids)


def test_equal_chunks_of_one_source_are_drawers_of_their_own(ledger: Ledger) -> None:
    assert file(ledger, ["same\n", "same\n", "other\n"]).new == 3
    assert sorted(texts_of(ledger)) == ["other\n", "same\n", "same\n"]


def test_a_revision_supersedes_what_is_gone_and_revives_what_is_back(ledger: Ledger) -> None:
    file(ledger, ["a\n", "b\n", "c\n"])
    second = file(ledger, ["a\n", "x\n", "c\n"], base=1)
    assert (second.change, second.new, second.kept, second.superseded) == ("changed", 1, 2, 1)
    assert sorted(texts_of(ledger)) == ["a\n", "c\n", "x\n"]
    third = file(ledger, ["a\n", "b\n", "c\n"], base=2)
    assert (third.new, third.superseded) == (0, 1)
    assert sorted(texts_of(ledger)) == ["a\n", "b\n", "c\n"]
    assert sorted(texts_of(ledger, Scope(history=True))) == ["a\n", "b\n", "c\n", "x\n"]


def test_appending_writes_only_what_is_new(ledger: Ledger) -> None:
    lines = [f"line {n}\n" for n in range(50)]
    file(ledger, lines)
    file(ledger, [*lines, "one more\n"], base=1)
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(membership)).scalar() == 51


def test_as_of_gives_back_each_moment(tmp_path: Path) -> None:
    now = [0]

    def clock() -> int:
        return now[0]

    ledger = Ledger(tmp_path / "p", create=True, clock=clock)
    for moment, texts in ((1000, ["a", "b"]), (2000, ["a", "c"]), (3000, ["b"])):
        now[0] = moment
        file(ledger, texts, base=moment // 1000 - 1)
    assert texts_of(ledger, Scope(as_of=999)) == []
    assert sorted(texts_of(ledger, Scope(as_of=1000))) == ["a", "b"]
    assert sorted(texts_of(ledger, Scope(as_of=2999))) == ["a", "c"]
    assert sorted(texts_of(ledger, Scope(as_of=3000))) == ["b"]


def test_staged_drawers_are_seen_by_nobody_until_the_revision_is_complete(ledger: Ledger) -> None:
    place = Place("file:big", "file", "big", "big", "wing", "general")
    filing = Filing(ledger, place, 0)
    with ledger.write() as cx:
        filing.stage(cx, chunks(["half\n"]), "test")
    assert texts_of(ledger, Scope(history=True)) == []
    with ledger.read() as cx:
        assert changed_rows(cx, 0, 10) == []
        assert cx.execute(select(func.count()).select_from(drawers)).scalar() == 1


def test_an_interrupted_filing_is_taken_up_without_doubling(ledger: Ledger) -> None:
    place = Place("file:big", "file", "big", "big", "wing", "general")
    with ledger.write() as cx:
        Filing(ledger, place, 0).stage(cx, chunks(["one\n", "two\n"]), "test")
    assert file(ledger, ["one\n", "two\n"], path="big").new == 2
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(drawers)).scalar() == 2


def test_a_filing_that_was_overtaken_says_so_and_changes_nothing(ledger: Ledger) -> None:
    file(ledger, ["first\n"])
    with pytest.raises(OvertakenError):
        file(ledger, ["late\n"], base=0)
    assert texts_of(ledger, Scope(history=True)) == ["first\n"]


def test_every_change_takes_a_new_number_in_commit_order(ledger: Ledger) -> None:
    file(ledger, ["a", "b"])
    with ledger.read() as cx:
        before = ledger.head()
        assert [row.seq for row in changed_rows(cx, 0, 10)] == [1, 2]
    file(ledger, ["a"], base=1)
    with ledger.read() as cx:
        (row,) = changed_rows(cx, before, 10)
        assert (row.text, row.state) == ("b", "superseded")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(["a", "b\n", "ç", "日本"]), max_size=8), min_size=1, max_size=6))
def test_the_members_of_every_revision_give_the_source_back(
    tmp_path_factory: pytest.TempPathFactory, versions: list[list[str]]
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("p") / "p", create=True)
    for number, texts in enumerate(versions):
        file(ledger, texts, base=number)
    with ledger.read() as cx:
        for number, texts in enumerate(versions, start=1):
            found = [drawer.text for drawer, _ in members(cx, "file:notes.md", number)]
            assert found == texts
        current = sorted(drawer.text for drawer in listed(cx, Scope(), 1000, 0)[1])
    assert current == sorted(versions[-1])
    ledger.close()
