from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lancedb.index import IvfRq

import castle.store.vectors as module
from castle.errors import ModelError
from castle.records import Scope
from castle.store import vector_index
from castle.store.projection import ProjectionRow, ProjectionUnavailable, Watermark
from castle.store.vectors import Vectors, as_stored, quoted, where_clause
from tests.store.rows import DIM, IDENTITY, make_row, make_vectors

CURRENT = Scope()


@pytest.fixture(params=["table", "memory"])
def vectors(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Vectors:
    if request.param == "table":
        monkeypatch.setattr(module, "MOST_BYTES", 0)
    else:
        monkeypatch.setattr(Vectors, "_asked", True, raising=False)
    return Vectors(tmp_path / "drawers.lance", IDENTITY)


def apply(vectors: Vectors, rows: list[ProjectionRow], seq: int = 0, epoch: str = "e") -> None:
    vectors.apply(rows, make_vectors([row.seq for row in rows]), Watermark(epoch, seq))


def found(vectors: Vectors, number: int, scope: Scope = CURRENT, limit: int = 10) -> list[str]:
    return [match.id for match in vectors.search(make_vectors([number])[0], scope, limit)]


def ids(*numbers: int) -> list[str]:
    return [make_row(number).id for number in numbers]


def files(vectors: Vectors, pattern: str) -> int:
    return len(list(vectors.directory.glob(pattern)))


def test_search_is_exact_by_cosine(vectors: Vectors) -> None:
    rows = [make_row(number) for number in range(200)]
    apply(vectors, rows, 200)
    query = make_vectors([777])[0] * 3
    matrix = make_vectors(list(range(200)))
    scores = as_stored(matrix) @ query / 3
    wanted = sorted(range(200), key=lambda number: -scores[number])[:20]
    matches = vectors.search(query, CURRENT, 20)
    assert [match.id for match in matches] == ids(*wanted)
    np.testing.assert_allclose([match.score for match in matches], scores[wanted], atol=1e-6)
    assert matches[0].sha256 == rows[wanted[0]].sha256
    assert vectors.search(-matrix[5], CURRENT, 200)[-1].score == pytest.approx(-1, abs=1e-6)
    assert vectors.search(query, CURRENT, 0) == []


def test_equal_vectors_come_by_id(vectors: Vectors) -> None:
    rows = [make_row(number) for number in range(300)]
    vectors.apply(rows, make_vectors([1] * 300), Watermark("e", 300))
    assert found(vectors, 1, limit=7) == sorted(ids(*range(300)))[:7]


def test_the_watermark_comes_with_the_batch(vectors: Vectors) -> None:
    assert vectors.watermark() is None
    apply(vectors, [make_row(1)], 7, "epoch")
    assert vectors.watermark() == Watermark("epoch", 7)
    apply(vectors, [], 9, "epoch")
    assert Vectors(vectors.path, IDENTITY).watermark() == Watermark("epoch", 9)
    assert vectors.count() == 1
    assert found(vectors, 1, Scope(history=True, kinds=("#watermark", "prose"))) == ids(1)


def test_the_watermark_is_that_of_the_table_as_it_is(vectors: Vectors) -> None:
    reader = Vectors(vectors.path, IDENTITY)
    for seq in (3, 5, 9):
        apply(vectors, [make_row(seq)], seq, "epoch")
        assert reader.watermark() == reader.watermark() == Watermark("epoch", seq)
    vectors.reset()
    assert reader.watermark() is None
    for seq in (1, 2, 4):
        apply(vectors, [make_row(seq)], seq, "another")
        assert reader.watermark() == Watermark("another", seq)


def test_applying_twice_changes_nothing(vectors: Vectors) -> None:
    rows = [make_row(1), make_row(2), make_row(2, "a later text")]
    for _ in range(3):
        apply(vectors, rows, 2)
        assert vectors.count() == 2
    assert vectors.search(make_vectors([2])[0], CURRENT, 1)[0].sha256 == rows[2].sha256


def test_forgotten_rows_go_and_come_back(vectors: Vectors) -> None:
    apply(vectors, [make_row(1), make_row(2, "the secret")], 2)
    gone = make_row(2, "the secret", state="forgotten", wing="w")
    vectors.apply([gone], np.zeros((1, DIM), dtype=np.float32), Watermark("e", 3))
    assert found(vectors, 2, Scope(history=True)) == ids(1)
    assert set(vectors.vectors_of(ids(1, 2))) == set(ids(1))
    assert vectors.count() == 1
    apply(vectors, [make_row(2)], 4)
    stored = vectors.vectors_of([*ids(1, 2, 3), "#watermark"])
    assert set(stored) == set(ids(1, 2))
    np.testing.assert_array_equal(stored[ids(2)[0]], as_stored(make_vectors([2])[0]))


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")])
def test_an_unusable_vector_is_refused(vectors: Vectors, bad: float) -> None:
    matrix = make_vectors([1, 2])
    matrix[1] = bad
    with pytest.raises(ModelError, match=ids(2)[0]):
        vectors.apply([make_row(1), make_row(2)], matrix, Watermark("e", 2))
    assert vectors.watermark() is None


@pytest.mark.parametrize(
    ("scope", "numbers"),
    [
        (Scope(), {0, 1, 2, 3}),
        (Scope(wing='it\'s "w"'), {1}),
        (Scope(wing="' OR '1'='1"), set()),
        (Scope(room="other"), {2}),
        (Scope(role="assistant"), {3}),
        (Scope(source="s2"), {2}),
        (Scope(kinds=("tool", "prose")), {0, 1, 2, 3, 4}),
        (Scope(history=True), {0, 1, 2, 3, 5}),
        (Scope(since=2000, until=3000), {2}),
        (Scope(as_of=2000), {0, 1, 2}),
        (Scope(as_of=5999), {0, 1, 2, 3, 5}),
        (Scope(as_of=6000), {0, 1, 2, 3}),
        (Scope(wing="\udcff"), set()),
    ],
)
def test_scope(vectors: Vectors, scope: Scope, numbers: set[int]) -> None:
    rows = [
        make_row(0),
        make_row(1, wing='it\'s "w"'),
        make_row(2, room="other", source="s2"),
        make_row(3, role="assistant"),
        make_row(4, kind="tool"),
        make_row(5, state="superseded", ended_at=6000),
    ]
    apply(vectors, rows, 6)
    assert set(found(vectors, 0, scope)) == set(ids(*numbers))


def test_scope_comes_before_the_limit(vectors: Vectors) -> None:
    rows = [make_row(number) for number in range(100)]
    apply(vectors, [*rows, make_row(100, wing="small")], 101)
    assert found(vectors, 5, Scope(wing="small"), 1) == ids(100)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    return Vectors(tmp_path_factory.mktemp("hostile") / "drawers.lance", IDENTITY)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=20), st.text(max_size=20))
def test_any_wing_finds_its_own_rows_only(hostile: Vectors, wing: str, other: str) -> None:
    apply(hostile, [make_row(1, wing=wing), make_row(2, wing=wing + "x", source=other)], 2)
    assert found(hostile, 1, Scope(wing=wing)) == ids(1)
    assert found(hostile, 1, Scope(wing=wing + "x", source=other)) == ids(2)


@given(st.text(max_size=20))
def test_a_quoted_value_ends_where_it_should(value: str) -> None:
    literal = quoted(value)
    assert literal[0] == literal[-1] == "'"
    assert "'" not in literal[1:-1].replace("''", "")
    assert literal in where_clause(Scope(room=value))


def test_tables_of_two_embedders_do_not_meet(vectors: Vectors) -> None:
    other = Vectors(vectors.path, IDENTITY.__class__(IDENTITY.name, DIM, "another"))
    apply(vectors, [make_row(1)], 1)
    assert other.watermark() is None
    apply(other, [make_row(2)], 2)
    other.reset()
    assert vectors.watermark() == Watermark("e", 1)
    assert other.watermark() is None


def test_another_process_is_seen(vectors: Vectors) -> None:
    apply(vectors, [make_row(1)], 1)
    reader = Vectors(vectors.path, IDENTITY)
    assert found(reader, 1) == ids(1)
    apply(vectors, [make_row(2)], 2)
    assert reader.watermark() == Watermark("e", 2)
    assert set(found(reader, 1)) == set(ids(1, 2))
    vectors.reset()
    assert reader.watermark() is None
    for number in (3, 4):
        apply(vectors, [make_row(number)], number, "f")
        assert ids(number)[0] in found(reader, number)
    assert reader.watermark() == Watermark("f", 4)


def test_a_commit_that_is_being_written_is_not_the_last_one(vectors: Vectors) -> None:
    apply(vectors, [make_row(1)], 1)
    (vectors.directory / "_versions" / "0.manifest#1").write_bytes(
        b""
    )  # as a writer that was killed leaves it
    assert (found(vectors, 1), vectors.watermark()) == (ids(1), Watermark("e", 1))
    apply(vectors, [make_row(2)], 2)
    assert (found(vectors, 2, limit=1), vectors.watermark()) == (ids(2), Watermark("e", 2))


def test_a_listed_commit_may_be_gone(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(vectors, [make_row(1)], 1)
    passing = vectors.directory / "_versions" / "0.manifest"
    listed = os.scandir
    lists = 0

    @contextmanager
    def scandir(path: Path) -> Iterator[list[os.DirEntry[str]]]:
        nonlocal lists
        lists += 1
        if lists == 1:
            passing.touch()
        with listed(path) as entries:
            names = list(entries)
        passing.unlink(missing_ok=True)
        yield names

    monkeypatch.setattr(os, "scandir", scandir)
    assert vectors.watermark() == Watermark("e", 1)
    assert lists == 2


def test_missing_and_damaged(vectors: Vectors) -> None:
    assert vectors.watermark() is None
    assert vectors.disk_bytes() == 0
    with pytest.raises(ProjectionUnavailable, match="castle repair"):
        found(vectors, 1)
    apply(vectors, [make_row(1)], 1)
    apply(vectors, [make_row(1), make_row(2)], 2)
    assert vectors.disk_bytes() > 0
    newest = min(vectors.directory.glob("_versions/*.manifest"))
    newest.write_bytes(newest.read_bytes()[:100])
    broken = Vectors(vectors.path, IDENTITY)
    assert broken.watermark() is None
    with pytest.raises(ProjectionUnavailable, match="castle repair"):
        broken.count()
    with pytest.raises(ProjectionUnavailable):
        apply(broken, [make_row(3)], 3)
    broken.reset()
    apply(broken, [make_row(3)], 3)
    assert found(broken, 3) == ids(3)


def test_a_damaged_list_of_deletions_is_refused(vectors: Vectors) -> None:
    apply(vectors, [make_row(1), make_row(2)], 2)
    apply(vectors, [make_row(1)], 3)
    (file,) = vectors.directory.glob("_deletions/*.arrow")
    whole = file.read_bytes()
    file.write_bytes(whole[:40] + bytes(len(whole) - 40))
    broken = Vectors(vectors.path, IDENTITY)
    assert broken.watermark() is None
    with pytest.raises(ProjectionUnavailable, match="is damaged"):
        found(broken, 1)


def test_small_commits_stay_bounded(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRAGMENTS", 12)
    monkeypatch.setattr(module, "STALE_VERSIONS", 20)
    monkeypatch.setattr(module, "RETENTION", timedelta(seconds=0.5))
    apply(vectors, [make_row(number) for number in range(500)], 500)
    for number in range(500, 620):
        apply(vectors, [make_row(number)], number)
    time.sleep(0.6)
    apply(vectors, [make_row(620)], 620)
    table = vectors._open()
    assert table.stats()["fragment_stats"]["num_fragments"] <= 13
    assert files(vectors, "_versions/*.manifest") <= 20 + 2  # with a write after the last look
    assert files(vectors, "**/*") < 100
    assert vectors.count() == 621
    everything = vectors.vectors_of(ids(*range(621)))
    for number in (0, 499, 500, 555, 620):
        np.testing.assert_array_equal(everything[ids(number)[0]], as_stored(make_vectors([number])[0]))
    assert vectors.watermark() == Watermark("e", 620)


def indexes(vectors: Vectors) -> dict[str, int]:
    """Return how many rows each index does not hold."""
    table = vectors._open()
    return {i.name: table.index_stats(i.name).num_unindexed_rows for i in table.list_indices()}


def test_indexes_change_no_answer(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [make_row(number, wing=f"w{number % 3}", room=f"r{number % 2}") for number in range(60)]
    apply(vectors, rows, 60)
    vectors.index()
    assert indexes(vectors) == {}
    scopes = [Scope(wing="w1"), Scope(wing="w1", room="r1"), Scope(since=30_000), Scope(source="source")]
    before = [found(vectors, 7, scope, 60) for scope in scopes]
    monkeypatch.setattr(vector_index, "INDEXED_ROWS", 10)
    vectors.index()
    assert indexes(vectors) == {f"{column}_idx": 0 for column in vector_index.COLUMNS if column != "vector"}
    assert [found(vectors, 7, scope, 60) for scope in scopes] == before
    moved = [make_row(0, wing="w1", seq=61), make_row(1, wing="w2", seq=62)]
    vectors.apply(moved, make_vectors([0, 1]), Watermark("e", 62))
    after = found(vectors, 7, Scope(wing="w1"), 60)
    assert set(after) == (set(before[0]) | set(ids(0))) - set(ids(1))


def test_indexes_are_made_anew_when_they_are_late(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "INDEXED_ROWS", 10)
    apply(vectors, [make_row(number) for number in range(100)], 100)
    vectors.index()
    apply(vectors, [make_row(number) for number in range(100, 105)], 105)
    vectors.index()
    assert indexes(vectors)["wing_idx"] == 6  # with the watermark
    apply(vectors, [make_row(number) for number in range(105, 120)], 120)
    vectors.index()
    assert set(indexes(vectors).values()) == {0}


def test_the_index_of_vectors_finds_what_reading_all_of_them_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "ANN_ROWS", 1000)
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    vectors = Vectors(tmp_path / "drawers.lance", IDENTITY.__class__("test", 128, "wide"))
    rows = [make_row(number, wing="small" if number % 10 == 0 else "large") for number in range(3000)]
    random = np.random.default_rng(1)
    centres = random.standard_normal((30, 128))
    matrix = centres[random.integers(0, 30, 3020)] + random.standard_normal((3020, 128))
    vectors.apply(rows, matrix[:3000].astype(np.float32), Watermark("e", 3000))
    vectors.index()
    assert indexes(vectors) == {"vector_idx": 0}
    asked: list[bool] = []
    pays = vector_index.pays

    def noted(table: Any, where: str) -> bool:
        asked.append(pays(table, where))
        return asked[-1]

    monkeypatch.setattr(vector_index, "pays", noted)
    for scope, large in ((CURRENT, True), (Scope(wing="large"), True), (Scope(wing="small"), False)):
        shares = []
        for query in matrix[3000:].astype(np.float32):
            exact = vectors.search(query, scope, 50, exact=True)
            near = vectors.search(query, scope, 50)
            assert asked[-1] is large
            shares.append(len({m.id for m in exact} & {m.id for m in near}) / 50)
            scores = {match.id: match.score for match in exact}
            assert all(abs(scores.get(match.id, match.score) - match.score) < 1e-6 for match in near)
        assert sum(shares) / len(shares) >= (0.98 if large else 1)


def test_every_part_of_the_index_is_read_however_many_there_are(
    vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "ANN_ROWS", 500)
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    apply(vectors, [make_row(number) for number in range(1000)], 1000)
    config = IvfRq(distance_type="cosine", num_partitions=100)
    vectors._open().create_index("vector", config=config)
    assert len(found(vectors, 7, limit=990)) == 990


def test_a_large_table_is_gathered_when_its_vectors_are_indexed(
    vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fragments() -> int:
        return int(vectors._open().stats()["fragment_stats"]["num_fragments"])

    for start in range(0, 1000, 50):
        apply(vectors, [make_row(number) for number in range(start, start + 50)], start + 50)
    vectors.index()
    assert fragments() == 20
    monkeypatch.setattr(vector_index, "ANN_ROWS", 500)
    monkeypatch.setattr(vector_index, "INDEXED_ROWS", 20)
    before, size = found(vectors, 7, limit=40), vectors.disk_bytes()
    reader = Vectors(vectors.path, IDENTITY)
    assert found(reader, 7, limit=40) == before
    vectors.index()
    assert (fragments(), indexes(vectors)["vector_idx"]) == (1, 0)
    assert found(vectors, 7, limit=40) == found(reader, 7, limit=40) == before
    assert len(list(vectors.directory.glob("data/*"))) == 1
    assert vectors.disk_bytes() < size
    assert vectors.watermark() == Watermark("e", 1000)
    assert not vectors.damaged_files()
    # A few new ones do not make it begin again, many do.
    for number in range(1000, 1018):
        apply(vectors, [make_row(number)], number + 1)
    vectors.index()
    assert fragments() == 19
    monkeypatch.setattr(vector_index, "MANY_FRAGMENTS", 18)
    vectors.index()
    # LanceDB keeps rows apart that other indexes have from those that they lack.
    assert (fragments(), indexes(vectors)["vector_idx"]) == (2, 0)


def test_vectors_whose_length_no_index_takes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "ANN_ROWS", 20)
    vectors = Vectors(tmp_path / "drawers.lance", IDENTITY.__class__("test", 6, "odd"))
    matrix = np.random.default_rng(1).standard_normal((50, 6)).astype(np.float32)
    vectors.apply([make_row(number) for number in range(50)], matrix, Watermark("e", 50))
    vectors.index()
    assert indexes(vectors) == {}
    assert [match.id for match in vectors.search(matrix[7], CURRENT, 1)] == ids(7)


def test_what_came_after_the_index_is_found(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "ANN_ROWS", 500)
    apply(vectors, [make_row(number) for number in range(1000)], 1000)
    vectors.index()
    moved, gone = make_row(1, "another text"), make_row(2, state="forgotten")
    vectors.apply([moved, gone, make_row(5000)], make_vectors([6000, 0, 5000]), Watermark("e", 5000))
    assert indexes(vectors)["vector_idx"] == 4
    assert found(vectors, 5000, limit=1) == ids(5000)
    assert found(vectors, 6000, limit=1) == ids(1)
    assert ids(2)[0] not in found(vectors, 2, limit=50)
    vectors._open().optimize(cleanup_older_than=module.RETENTION)
    assert found(vectors, 5000, limit=1) == ids(5000)
    assert ids(2)[0] not in found(vectors, 2, limit=50)


def test_a_table_of_32_bits_is_built_again(vectors: Vectors) -> None:
    apply(vectors, [make_row(1)], 1)
    table = vectors._open().to_arrow()
    column = table.schema.get_field_index("vector")
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2 * DIM, np.float32)), DIM)
    vectors._connect().create_table(
        vectors.table_name, data=table.set_column(column, "vector", wide), mode="overwrite"
    )
    vectors.close()
    assert vectors.watermark() is None
    with pytest.raises(ProjectionUnavailable, match="castle repair"):
        found(vectors, 1)
    vectors.reset()
    apply(vectors, [make_row(1)], 1)
    assert found(vectors, 1) == ids(1)


def test_silence(vectors: Vectors, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        apply(vectors, [make_row(number)], number)
    found(vectors, 1)
    vectors._open().optimize(cleanup_older_than=module.RETENTION)
    vectors.vectors_of(ids(1))
    vectors.reset()
    assert capfd.readouterr() == ("", "")
