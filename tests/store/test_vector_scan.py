"""The vectors of the ledger's cache answer as the table does, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from castle.novelty.scoring import update
from castle.records import Scope
from castle.store import vector_scan
from castle.store.catchup import catch_up_lexicon, catch_up_vectors
from castle.store.palace import Palace
from castle.store.places import forget
from castle.store.vector_scan import scan_of
from tests.store.filer import file

WORDS = "harbour lantern quarry meadow copper winter bridge saddle orchard thunder".split()


@pytest.fixture
def filed(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> Palace:
    monkeypatch.setattr(vector_scan, "_is_loaded", lambda: False)
    file(palace.ledger, [f"{one} and {two} {n}\n" for n, one in enumerate(WORDS) for two in WORDS])
    _indexed(palace)
    update(palace)
    return palace


def _indexed(palace: Palace) -> None:
    catch_up_lexicon(palace)
    catch_up_vectors(palace)


def _same(palace: Palace, scope: Scope, text: str, limit: int) -> None:
    palace.asked = False
    scan = scan_of(palace, scope)
    assert scan is not None
    query = palace.embedder.embed_query(text)
    mine, table = scan.search(query, scope, limit), palace.vectors.search(query, scope, limit)
    assert [match.id for match in mine] == [match.id for match in table]
    assert [match.sha256 for match in mine] == [match.sha256 for match in table]
    assert [match.score for match in mine] == pytest.approx([match.score for match in table], abs=1e-6)


@pytest.mark.parametrize("limit", [1, 7, 100, 500])
def test_it_finds_what_the_table_finds(filed: Palace, limit: int) -> None:
    _same(filed, Scope(), "a lantern on the bridge", limit)


def test_what_came_after_novelty_was_brought_up_to_date_is_found(filed: Palace) -> None:
    file(filed.ledger, [f"late {word}\n" for word in WORDS], path="late.md")
    _indexed(filed)
    _same(filed, Scope(), "late winter", 20)


def test_what_is_out_of_scope_is_not_found(filed: Palace) -> None:
    file(filed.ledger, ["lantern elsewhere\n"], path="other.md", wing="other")
    _indexed(filed)
    update(filed)
    _same(filed, Scope(wing="other"), "lantern", 10)
    query = filed.embedder.embed_query("lantern elsewhere")
    first = filed.vectors.search(query, Scope(), 1)[0]
    forget(filed.ledger, id_=first.id, actor="test")
    filed.asked = False
    scan = scan_of(filed, Scope())
    assert scan is not None
    assert first.id not in [match.id for match in scan.search(query, Scope(), 500)]


def test_the_second_question_opens_the_table(filed: Palace) -> None:
    assert scan_of(filed, Scope()) is not None
    assert scan_of(filed, Scope()) is None


@pytest.mark.parametrize("scope", [Scope(history=True), Scope(as_of=1)])
def test_the_past_is_left_to_the_table(filed: Palace, scope: Scope) -> None:
    assert scan_of(filed, scope) is None


def test_a_scope_beyond_the_bound_is_left_to_the_table(
    filed: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_scan, "MOST_DRAWERS", 50)
    assert scan_of(filed, Scope()) is None


def test_a_drawer_without_vector_is_left_to_the_table_to_tell(filed: Palace) -> None:
    file(filed.ledger, ["nobody has embedded this\n"], path="new.md")
    assert scan_of(filed, Scope()) is None


def test_a_damaged_vector_is_left_to_the_table(filed: Palace) -> None:
    with filed.ledger.write() as cx:
        cx.exec_driver_sql("UPDATE vectors SET vector = zeroblob(length(vector))")
    assert scan_of(filed, Scope()) is None


def test_a_damaged_or_missing_table_is_seen(filed: Palace) -> None:
    directory: Path = filed.vectors.directory
    filed.vectors.close()
    data = next(directory.glob("data/*"))
    data.write_bytes(data.read_bytes()[:-1])
    assert scan_of(filed, Scope()) is None
    filed.asked = False
    filed.vectors.reset()
    assert scan_of(filed, Scope()) is None
