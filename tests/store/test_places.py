from __future__ import annotations

from pathlib import Path

import pytest

from castle.errors import NotFoundError, RefusedError, UsageError
from castle.records import Scope
from castle.store.ledger import Ledger
from castle.store.places import forget, present_name, rename_wing, restore
from castle.store.reading import changed_rows, counts, full_id, listed, neighbours, one_source
from tests.store.filer import file

CURRENT = Scope()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "p", create=True)


def ids_of(ledger: Ledger, scope: Scope = CURRENT) -> list[str]:
    with ledger.read() as cx:
        return [drawer.id for drawer in listed(cx, scope, 1000, 0)[1]]


def test_a_forgotten_drawer_is_out_of_sight_and_comes_back(ledger: Ledger) -> None:
    file(ledger, ["a", "b", "c"])
    _, middle, _ = ids_of(ledger)
    assert forget(ledger, id_=middle[:10], actor="me") == 1
    assert forget(ledger, id_=middle, actor="me") == 0
    assert middle not in ids_of(ledger)
    assert middle not in ids_of(ledger, Scope(history=True))
    assert restore(ledger, id_=middle) == 1
    assert middle in ids_of(ledger)


def test_forgetting_gives_the_projections_a_change_to_replay(ledger: Ledger) -> None:
    file(ledger, ["a", "b"])
    head = ledger.head()
    forget(ledger, source="notes.md", actor="me")
    with ledger.read() as cx:
        assert {(row.text, row.state) for row in changed_rows(cx, head, 10)} == {
            ("a", "forgotten"),
            ("b", "forgotten"),
        }


def test_restoring_brings_each_drawer_back_to_the_state_it_has_now(ledger: Ledger) -> None:
    file(ledger, ["old", "kept"])
    file(ledger, ["kept"], base=1)
    forget(ledger, source="notes.md", actor="me")
    restore(ledger, source="notes.md")
    with ledger.read() as cx:
        states = {d.text: d.state for d in listed(cx, Scope(history=True), 10, 0)[1]}
    assert states == {"old": "superseded", "kept": "current"}


def test_a_forgotten_drawer_stays_forgotten_through_later_revisions(ledger: Ledger) -> None:
    file(ledger, ["secret plan", "kept"])
    target = ids_of(ledger)[0]
    forget(ledger, id_=target, actor="me")
    file(ledger, ["kept"], base=1)
    file(ledger, ["secret plan", "kept"], base=2)
    assert target not in ids_of(ledger, Scope(history=True))


def test_a_whole_wing_is_forgotten_and_restored(ledger: Ledger) -> None:
    file(ledger, ["a"], path="a.md", wing="one")
    file(ledger, ["b"], path="b.md", wing="two")
    assert forget(ledger, wing="one", actor="me") == 1
    assert len(ids_of(ledger)) == 1
    assert restore(ledger, wing="one") == 1
    with pytest.raises(NotFoundError, match="no wing three"):
        forget(ledger, wing="three", actor="me")


def test_a_renamed_wing_takes_everything_along_and_is_found_under_both_names(ledger: Ledger) -> None:
    file(ledger, ["a", "b"], wing="old")
    assert rename_wing(ledger, "old", "new") == 2
    assert ids_of(ledger, Scope(wing="old")) == []
    assert len(ids_of(ledger, Scope(wing="new"))) == 2
    rename_wing(ledger, "new", "newer")
    with ledger.read() as cx:
        assert present_name(cx, "old") == "newer"
        assert present_name(cx, "new") == "newer"
    rename_wing(ledger, "newer", "old")
    with ledger.read() as cx:
        assert present_name(cx, "old") == "old"


def test_two_wings_are_joined_only_when_asked(ledger: Ledger) -> None:
    file(ledger, ["a"], path="a.md", wing="one")
    file(ledger, ["b"], path="b.md", wing="two")
    with pytest.raises(RefusedError, match="--merge"):
        rename_wing(ledger, "one", "two")
    assert rename_wing(ledger, "one", "two", merge=True) == 1
    with ledger.read() as cx:
        assert [(p.wing, p.current) for p in counts(cx)] == [("two", 2)]


def test_ids_are_found_by_a_unique_beginning_only(ledger: Ledger) -> None:
    file(ledger, [f"text {n}" for n in range(40)])
    id_ = ids_of(ledger)[7]
    with ledger.read() as cx:
        assert full_id(cx, id_.upper()) == id_
        assert full_id(cx, id_[:12]) == id_
        with pytest.raises(UsageError):
            full_id(cx, id_[:3])
        with pytest.raises(UsageError):
            full_id(cx, "x' OR 1=1 --")
        with pytest.raises(NotFoundError):
            full_id(cx, "0" * 24)


def test_neighbours_are_those_of_the_revision_that_held_the_drawer_last(ledger: Ledger) -> None:
    file(ledger, ["a", "b", "c", "d"])
    gone = ids_of(ledger)[1]
    file(ledger, ["a", "c", "d"], base=1)
    with ledger.read() as cx:
        assert [drawer.text for drawer, _ in neighbours(cx, gone, 1)] == ["a", "b", "c"]
        kept = listed(cx, Scope(), 10, 0)[1][1].id
        assert [drawer.text for drawer, _ in neighbours(cx, kept, 1)] == ["a", "c", "d"]


def test_a_source_is_named_by_its_path_or_the_end_of_it(ledger: Ledger) -> None:
    file(ledger, ["a"], path="src/app/main.py")
    file(ledger, ["b"], path="lib/main.py")
    with ledger.read() as cx:
        assert one_source(cx, "app/main.py").path == "src/app/main.py"
        with pytest.raises(UsageError, match="2 sources"):
            one_source(cx, "main.py")
        with pytest.raises(NotFoundError):
            one_source(cx, "ain.py")
        with pytest.raises(NotFoundError):
            one_source(cx, "%")


def test_a_path_from_here_is_meant_before_any_end_of_a_path(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(ledger, ["a"], path=str(tmp_path / "notes" / "x.md"))
    file(ledger, ["b"], path="/elsewhere/notes/x.md")
    monkeypatch.chdir(tmp_path)
    with ledger.read() as cx:
        for name in ("notes/x.md", "./notes/x.md", "notes/../notes/x.md"):
            assert one_source(cx, name).path == str(tmp_path / "notes" / "x.md")
