"""Looking drawers up by their ids, inside a scope."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from castle.records import Scope
from castle.store import reading
from castle.store.catchup import catch_up_lexicon, up_to_date
from castle.store.ledger import run
from castle.store.palace import Palace
from castle.store.places import forget
from castle.store.reading import copies_of, drawers_by_id, scope_clause, scope_sql, within
from castle.store.schema import drawers, sources
from tests.store.filer import file

SCOPES = [
    Scope(),
    Scope(wing="w1"),
    Scope(wing="' OR '1'='1"),
    Scope(room="r0"),
    Scope(source="file:2.md"),
    Scope(role="user"),
    Scope(kinds=("tool",)),
    Scope(kinds=("tool", "prose")),
    Scope(history=True),
    Scope(since=1),
    Scope(until=1),
    Scope(as_of=2**60),
    Scope(as_of=1),
    Scope(wing="w0", history=True, since=0, until=2**60),
]


@pytest.fixture
def filed(palace: Palace) -> Palace:
    for number in range(6):
        kind = "tool" if number == 4 else "prose"
        texts = [f"{number} {at}" for at in range(8)] + ["the same everywhere"]
        place: Any = {
            "path": f"{number}.md",
            "wing": f"w{number % 2}",
            "room": f"r{number % 3}",
            "kind": kind,
        }
        file(palace.ledger, texts, **place)
        if number == 3:
            file(palace.ledger, texts[:5], **place, base=1)
    forget(palace.ledger, source="5.md", actor="test")
    return palace


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_the_same_in_sql(filed: Palace, scope: Scope) -> None:
    with filed.ledger.read() as cx:
        every = [id_ for (id_,) in cx.execute(select(drawers.c.id))]
        joined = drawers.join(sources, sources.c.id == drawers.c.source)
        query = select(drawers.c.id).select_from(joined).where(scope_clause(scope))
        wanted = {id_ for (id_,) in cx.execute(query)}
        assert within(cx, [*every, "unknown"], scope) == wanted
        found = drawers_by_id(cx, every, scope)
        assert set(found) == wanted
        whole = drawers_by_id(cx, every)
        assert found == {id_: whole[id_] for id_ in wanted}
        assert set(whole) == set(every)
        same = {d.sha256 for d in whole.values() if d.text == "the same everywhere"}
        (copies,) = copies_of(cx, list(same), scope).values()
        assert set(copies) == {id_ for id_ in wanted if whole[id_].sha256 in same}


def test_drawers_are_looked_up_by_their_ids(filed: Palace) -> None:
    for scope in SCOPES:
        if scope.source is not None:
            continue
        inside, values = scope_sql(scope)
        statement = (
            f"EXPLAIN QUERY PLAN SELECT drawers.id FROM {reading._JOINED} "  # noqa: S608
            f"WHERE drawers.id IN ({reading._LISTED}) AND {inside}"
        )
        with filed.ledger.read() as cx:
            plan = [row[3] for row in run(cx, statement, ("[]", *values))]
        assert any("drawers USING INDEX sqlite_autoindex_drawers" in step for step in plan), plan


def test_an_index_is_up_to_date_until_something_changes(filed: Palace) -> None:
    assert not up_to_date(filed, filed.lexicon)
    catch_up_lexicon(filed)
    assert up_to_date(filed, filed.lexicon)
    file(filed.ledger, ["new"], path="new.md")
    assert not up_to_date(filed, filed.lexicon)
    catch_up_lexicon(filed)
    with filed.ledger.write() as cx:
        run(cx, "UPDATE drawers SET detector_version = 0 WHERE rid = 1")
    assert not up_to_date(filed, filed.lexicon)
