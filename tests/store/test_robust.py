"""Damage, full disks, stalled writers and odd places: what the store says and what it mends."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from castle import Castle
from castle.errors import PalaceBusyError, PalaceError
from castle.records import Finding
from castle.store.catchup import behind, catch_up_lexicon, catch_up_vectors, missing, refresh
from castle.store.ledger import Ledger
from castle.store.native import native_edge
from castle.store.palace import Palace
from castle.store.places import forget, restore
from castle.store.projection import ProjectionBlocked, ProjectionUnavailable
from castle.store.repair import repair
from castle.store.verify import verify
from tests.store.filer import file

FOREVER = 100_000.0
Usage = namedtuple("Usage", "total used free")


@contextmanager
def another_writer(root: Path) -> Iterator[sqlite3.Connection]:
    """Hold the ledger as a process does that was stopped in the middle of a transaction."""
    other = sqlite3.connect(root / "castle.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.execute("ROLLBACK")
        other.close()


def states(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.status for finding in findings}


def indexed(palace: Palace) -> None:
    catch_up_lexicon(palace)
    catch_up_vectors(palace)


def change(palace: Palace, statement: str, *values: object) -> int:
    """Change the ledger behind its back, as a broken disk does."""
    with palace.ledger.write() as cx:
        return cx.exec_driver_sql(statement, values).rowcount


@pytest.mark.timeout(60)
def test_a_search_does_not_wait_for_a_stalled_writer(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        palace = castle._palace(create=True)
        file(palace.ledger, ["the harbour is closed\n"])
        indexed(palace)
        file(palace.ledger, ["a lighthouse stands there\n"], path="new.md")
        palace.ledger.patience = FOREVER
        with another_writer(palace.root):
            found = castle.search("lighthouse")
            assert [hit.text for hit in found.hits][0] == "a lighthouse stands there\n"
            assert any("busy" in reason for reason in found.degraded)
        assert castle.search("lighthouse").degraded == ()


@pytest.mark.timeout(60)
def test_a_refresh_after_a_change_does_not_wait_either(palace: Palace) -> None:
    file(palace.ledger, ["one\n"])
    palace.ledger.patience = FOREVER
    with another_writer(palace.root):
        refresh(palace, 0.2)
    indexed(palace)
    assert set(states(verify(palace)).values()) == {"ok"}


@pytest.mark.timeout(60)
def test_a_writer_waits_for_as_long_as_it_is_told(palace: Palace) -> None:
    palace.ledger.patience = FOREVER
    with another_writer(palace.root):
        with pytest.raises(PalaceBusyError, match="busy for 0.0 s"), palace.ledger.write(0):
            pass
        palace.ledger.patience = 0.0
        with pytest.raises(PalaceBusyError), palace.ledger.write():
            pass


DAMAGE = {
    "too short": b"\x00\x3c",
    "empty": b"",
    "an odd number of bytes": b"\x3c" * 127,
    "zero": bytes(128),
    "not a number": np.full(64, np.nan, np.float16).tobytes(),
    "one infinite number": np.array([np.inf] + [0.1] * 63, np.float16).tobytes(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_vector_counts_as_missing_and_is_made_again(palace: Palace, damage: str) -> None:
    assert palace.identity.dim == 64
    file(palace.ledger, ["the harbour\n", "the lighthouse\n"])
    indexed(palace)
    assert set(states(verify(palace)).values()) == {"ok"}
    assert change(palace, "UPDATE vectors SET vector = ?", DAMAGE[damage]) == 2
    before = {finding.check: finding for finding in verify(palace)}
    assert before["vectors"].status == "failed"
    assert "keeps no vector" in before["vectors"].detail
    assert set(states(repair(palace)).values()) == {"ok"}
    assert set(states(verify(palace)).values()) == {"ok"}


def test_a_damaged_vector_is_made_again_when_the_table_is_built_anew(palace: Palace) -> None:
    file(palace.ledger, ["the harbour\n", "the lighthouse\n"])
    indexed(palace)
    change(palace, "UPDATE vectors SET vector = ?", bytes(128))
    palace.vectors.reset()
    catch_up_vectors(palace)
    assert set(states(verify(palace)).values()) == {"ok"}


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE drawers SET text = X'ff00'", "drawers"),
        ("UPDATE drawers SET text = CAST(X'ff00' AS TEXT)", "drawers"),
        ("UPDATE drawers SET sealed = '{'", "words"),
        ("UPDATE drawers SET sha256 = 'no bytes'", "drawers"),
        ("UPDATE revisions SET sha256 = X'00'", "sources"),
    ],
)
def test_damaged_rows_are_a_failed_check(palace: Palace, statement: str, check: str) -> None:
    file(palace.ledger, ["the harbour\n"])
    indexed(palace)
    assert change(palace, statement) == 1
    assert states(verify(palace))[check] == "failed"


def test_a_malformed_database_is_a_failed_check(palace: Palace) -> None:
    for number in range(30):
        file(palace.ledger, [f"page {number} {'x' * 4000}\n"], path=f"{number}.md")
    indexed(palace)
    palace.ledger.close()
    with sqlite3.connect(palace.ledger.path) as cx:
        cx.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    cx.close()
    with palace.ledger.path.open("r+b") as database:
        size = database.seek(0, os.SEEK_END)
        for place in range(size // 2, size - 4096, 4096):
            database.seek(place)
            database.write(b"\xff" * 64)
    found = {finding.check: finding for finding in verify(palace)}
    assert found["database"].status == "failed"
    assert "failed" in {found["drawers"].status, found["sources"].status}
    assert all("Traceback" not in finding.detail for finding in found.values())


def test_a_busy_ledger_and_an_index_that_is_late_are_not_checked(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(palace.ledger, ["the harbour\n"])
    indexed(palace)
    file(palace.ledger, ["the lighthouse\n"], path="new.md")
    late = {finding.check: finding for finding in verify(palace)}
    assert (late["words"].status, late["vectors"].status) == ("not checked", "not checked")
    assert "not in it yet: 1" in late["words"].detail

    def busy(*_: object) -> None:
        raise PalaceBusyError("busy")

    monkeypatch.setattr(Ledger, "read", busy)
    assert states(verify(palace))["drawers"] == "not checked"


@pytest.mark.parametrize(
    "value", ["{", "[]", "null", '"x"', '{"name": "fake"}', '{"name": 1, "dim": "x", "identity": null}', ""]
)
def test_a_damaged_row_about_the_embedder_is_one_line(palace: Palace, value: str) -> None:
    file(palace.ledger, ["the harbour\n"])
    indexed(palace)
    change(palace, "UPDATE meta SET value = ? WHERE key = 'embedder'", value)
    with pytest.raises(PalaceError, match="which embedder"):
        _ = palace.identity
    with pytest.raises(PalaceError, match="which embedder"):
        catch_up_vectors(palace)
    assert states(verify(palace))["drawers"] == "ok"


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\0b", "a\udcffb", "a\x7fb", "a\x9bb"])
def test_a_palace_cannot_be_at_a_path_that_terminals_or_libraries_refuse(tmp_path: Path, name: str) -> None:
    with pytest.raises(PalaceError, match="cannot be at") as error:
        Palace(tmp_path / name, create=True, embedder="fake")
    assert str(error.value).isprintable()
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]


def test_a_library_that_dies_of_a_full_disk_is_blocked_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "lexicon" / "deeper"
    with pytest.raises(ProjectionUnavailable, match="castle repair"), native_edge("index", place):
        raise ValueError("the writer was killed")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - 4096, 4096))
    with pytest.raises(ProjectionBlocked, match="the disk is full"), native_edge("index", place):
        raise ValueError("the writer was killed")


def test_repair_throws_nothing_away_that_it_cannot_build_again(palace: Palace) -> None:
    file(palace.ledger, ["the harbour\n", "the lighthouse\n"])
    indexed(palace)
    change(palace, "UPDATE drawers SET sealed = '[{}]' WHERE text LIKE '%light%'")
    with pytest.raises(PalaceError, match="its row in the ledger is damaged"):
        repair(palace)
    assert palace.vectors.count() == 2
    assert palace.lexicon.count() == 2


def test_leftovers_of_a_reset_that_was_killed_are_cleaned_away(palace: Palace) -> None:
    file(palace.ledger, ["the harbour\n"])
    indexed(palace)
    left = [
        palace.root / "lexicon.discarded-00",
        palace.root / "drawers.lance" / "drawers_0.discarded-00",
    ]
    for clean in (indexed, repair):
        for directory in left:
            (directory / "deeper").mkdir(parents=True)
        file(palace.ledger, [f"the lighthouse {clean}\n"], path=f"{clean.__name__}.md")
        clean(palace)
        assert [directory for directory in left if directory.exists()] == []
    assert set(states(verify(palace)).values()) == {"ok"}


@pytest.mark.parametrize("name", ["drawers.lance", "lexicon"])
def test_a_file_in_the_place_of_an_index_is_moved_out_of_the_way(tmp_path: Path, name: str) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        palace = castle._palace(create=True)
        file(palace.ledger, ["the harbour\n"])
        indexed(palace)
        palace.lexicon.close()
        palace.vectors.close()
        place = palace.root / name
        shutil.rmtree(place)
        place.write_text("no directory", encoding="utf-8")
    with Castle(tmp_path / "palace") as castle:
        check = "words" if name == "lexicon" else "vectors"
        assert states(castle.verify())[check] == "not checked"
        status = {projected.name: projected.behind for projected in castle.status().projections}
        assert status[check] == 1
    with Castle(tmp_path / "palace") as castle:
        found = castle.search("harbour")
        assert [hit.text for hit in found.hits] == ["the harbour\n"]
        assert found.degraded == ()
        assert set(states(castle.verify()).values()) == {"ok"}
    (moved,) = place.parent.glob(f"{name}.in-the-way-*")
    assert moved.read_text(encoding="utf-8") == "no directory"


@pytest.mark.parametrize("create", [False, True])
def test_a_palace_that_is_a_file_or_cannot_be_looked_at_is_one_line(
    tmp_path: Path, create: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for place in (
        tmp_path / "file",
        tmp_path / "file" / "deeper",
        Path("/proc/self/palace"),
        Path("/dev/null"),
    ):
        with pytest.raises(PalaceError) as error:
            Palace(place, create=create, embedder="fake")
        assert str(place) in str(error.value)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    closed = tmp_path / "closed"
    closed.mkdir()

    def refuse(path: Path, **_: object) -> os.stat_result:
        if path.is_relative_to(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    real = os.stat
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        patch.setattr(Path, "lstat", refuse)
        with pytest.raises(PalaceError, match="Permission denied|no palace") as error:
            Palace(closed, create=create, embedder="fake")
    assert str(closed) in str(error.value)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "lance error: LanceError(IO): file size is too small, /root/.cargo/registry/src/index.io-19/"
            "lance-io-13.0.0/src/utils.rs:172:20",
            "lance error: LanceError(IO): file size is too small",
        ),
        ("bad whole buffer, /rustc/ab12/library/core/src/ops/function.rs:250:5", "bad whole buffer"),
        (
            r"gone, C:\\Users\\runner\\.cargo\\registry\\src\\lance\\dataset.rs:775 (os error 2)",
            "gone (os error 2)",
        ),
        ("no file /home/me/notes.rs, it was moved", "no file /home/me/notes.rs, it was moved"),
    ],
)
def test_errors_of_libraries_do_not_name_the_machine_they_were_built_on(
    tmp_path: Path, said: str, shown: str
) -> None:
    with pytest.raises(ProjectionUnavailable) as error, native_edge("index", tmp_path):
        raise RuntimeError(said)
    assert f"({shown})" in str(error.value)


def test_forgotten_drawers_are_not_missing(palace: Palace) -> None:
    file(palace.ledger, ["the harbour\n", "the lighthouse\n", "the pier\n"])
    assert (missing(palace, palace.vectors), behind(palace, palace.vectors)) == (3, 3)
    indexed(palace)
    assert missing(palace, palace.vectors) == 0
    with palace.ledger.read() as cx:
        ids = [row[0] for row in cx.exec_driver_sql("SELECT id FROM drawers WHERE text LIKE '%harbour%'")]
    forget(palace.ledger, id_=ids[0], actor="test")
    assert (missing(palace, palace.vectors), behind(palace, palace.vectors)) == (0, 1)
    restore(palace.ledger, id_=ids[0])
    assert missing(palace, palace.vectors) == 1
