"""Vectors in memory answer as the table does, and are never older than it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import castle.store.resident as resident
import castle.store.vectors as module
from castle.records import Scope
from castle.store.projection import ProjectionRow, ProjectionUnavailable, Watermark
from castle.store.resident import Resident
from castle.store.vectors import Vectors
from tests.store.rows import DIM, IDENTITY, make_row, make_vectors

SCOPES = [
    Scope(),
    Scope(wing="w1"),
    Scope(wing="nowhere"),
    Scope(room="r0", role="assistant"),
    Scope(source="s3"),
    Scope(kinds=("tool",)),
    Scope(kinds=("tool", "prose")),
    Scope(history=True),
    Scope(as_of=150_000),
    Scope(since=50_000, until=120_000),
]


def varied(number: int, **changes: Any) -> ProjectionRow:
    return make_row(
        number,
        wing=f"w{number % 3}",
        room=f"r{number % 2}",
        kind=["prose", "tool", "prose", "code"][number % 4],
        role="assistant" if number % 5 == 0 else "user",
        source=f"s{number % 7}",
        state="superseded" if number % 6 == 0 else "current",
        ended_at=100_000 + number * 1000 if number % 6 == 0 else None,
        **changes,
    )


def warm(path: Path, asked: bool = True) -> Vectors:
    vectors = Vectors(path, IDENTITY)
    if asked:
        vectors.search(make_vectors([1])[0], Scope(), 1)
    return vectors


def put(vectors: Vectors, rows: list[ProjectionRow], seq: int) -> None:
    vectors.apply(rows, make_vectors([row.seq for row in rows]), Watermark("e", seq))


@pytest.fixture
def filed(tmp_path: Path) -> Vectors:
    vectors = Vectors(tmp_path / "drawers.lance", IDENTITY)
    put(vectors, [varied(number) for number in range(200)], 200)
    return vectors


def same(left: Vectors, right: Vectors) -> None:
    """Compare what is in memory with what LanceDB finds."""
    for number in (3, 17, 500):
        for scope in SCOPES:
            for limit in (1, 7, 300):
                query = make_vectors([number])[0]
                mine = left.search(query, scope, limit)
                right._asked = False
                table = right.search(query, scope, limit)
                assert [(m.id, m.sha256) for m in mine] == [(m.id, m.sha256) for m in table]
                np.testing.assert_allclose([m.score for m in mine], [m.score for m in table], atol=1e-6)
    assert left._resident is not None
    assert left._resident[2] is not None


def test_it_finds_what_the_table_finds(filed: Vectors) -> None:
    same(warm(filed.path), Vectors(filed.path, IDENTITY))


def test_the_first_question_does_not_read_everything(filed: Vectors) -> None:
    vectors = warm(filed.path)
    assert vectors._resident is None
    vectors.search(make_vectors([1])[0], Scope(), 1)
    assert vectors._resident is not None


def test_what_another_process_writes_is_found_at_once(filed: Vectors) -> None:
    reader = warm(filed.path)
    same(reader, Vectors(filed.path, IDENTITY))
    changes = [
        [varied(300), varied(301)],
        [varied(5, seq=302), varied(6, text="another text", seq=303)],
        [varied(17)._replace(seq=304, state="superseded", ended_at=130_000)],
        [make_row(7, state="forgotten", seq=305)],
        [varied(7, seq=306)],
    ]
    for rows in changes:
        put(filed, rows, rows[-1].seq)
        same(reader, Vectors(filed.path, IDENTITY))
    put(filed, [make_row(3, state="forgotten", seq=400)], 400)
    query = make_vectors([3])[0]
    assert make_row(3).id not in [match.id for match in reader.search(query, Scope(history=True), 300)]


def test_changes_are_read_without_the_rest(filed: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = warm(filed.path)
    same(reader, Vectors(filed.path, IDENTITY))
    monkeypatch.setattr(Resident, "of", lambda *_: pytest.fail("everything was read once more"))
    put(filed, [varied(300), varied(5, seq=301)], 301)
    put(filed, [], 305)
    same(reader, Vectors(filed.path, IDENTITY))


def test_many_changes_end_in_reading_everything_once_more(
    filed: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "_LEAST_SPARE", 10)
    monkeypatch.setattr(resident, "_SPARE", 1000)
    reader = warm(filed.path)
    for round_ in range(8):
        seq = 300 + 10 * round_
        put(filed, [varied(round_ + at, seq=seq + at) for at in range(4)], seq + 4)
        same(reader, Vectors(filed.path, IDENTITY))
    assert reader._resident is not None
    assert reader._resident[2] is not None
    assert len(reader._resident[2]._columns["id"]) == 210


def test_a_table_that_was_built_again_is_read_again(filed: Vectors) -> None:
    reader = warm(filed.path)
    same(reader, Vectors(filed.path, IDENTITY))
    filed.reset()
    with pytest.raises(ProjectionUnavailable, match="castle repair"):
        reader.search(make_vectors([1])[0], Scope(), 1)
    put(filed, [varied(number) for number in range(50, 90)], 90)
    same(reader, Vectors(filed.path, IDENTITY))
    filed.reset()
    put(filed, [varied(number, seq=1000 + number) for number in range(10)], 2000)
    same(reader, Vectors(filed.path, IDENTITY))


def test_a_table_beyond_the_bound_is_left_to_lancedb(filed: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", resident.BYTES * DIM * 210)
    reader = warm(filed.path)
    same(reader, Vectors(filed.path, IDENTITY))
    put(filed, [varied(number) for number in range(300, 320)], 320)
    query = make_vectors([310])[0]
    assert (
        reader.search(query, Scope(history=True, kinds=("tool", "prose", "code")), 1)[0].id
        == make_row(310).id
    )
    assert reader._resident is not None
    assert reader._resident[2] is None


def test_memory_is_bounded_by_what_is_read(filed: Vectors) -> None:
    reader = warm(filed.path)
    same(reader, Vectors(filed.path, IDENTITY))
    held = reader._resident
    assert held is not None
    assert held[2] is not None
    kept = held[2]._columns["vector"].nbytes + held[2]._rough.numbers.nbytes
    assert kept == resident.BYTES * DIM * (200 + resident._LEAST_SPARE)
    reader.close()
    assert reader._resident is None


def test_one_that_was_extended_still_answers_as_it_did(filed: Vectors) -> None:
    reader = warm(filed.path)
    query, scope = make_vectors([17])[0], Scope(history=True, kinds=("tool", "prose", "code"))
    before = reader.search(query, scope, 300)
    assert reader._resident is not None
    older = reader._resident[2]
    assert older is not None
    put(filed, [varied(17, text="another", seq=300), varied(400)], 400)
    assert {match.id for match in reader.search(query, scope, 300)} > {match.id for match in before}
    assert older.search(query, scope, 300) == before
