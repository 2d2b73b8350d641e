"""Each part of the palace says for itself whether it is in force."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from castle import Castle
from castle.keep import standing
from castle.records import Finding
from castle.store.ledger import Ledger
from castle.store.locks import FileLock
from castle.store.schema import SCHEMA_VERSION, tables
from tests.store.filer import file


def found(castle: Castle) -> dict[str, Finding]:
    return {finding.check: finding for finding in castle.repair_status()}


def failing(castle: Castle) -> set[str]:
    return {name for name, finding in found(castle).items() if finding.status == "failed"}


def test_a_palace_in_order_says_so_with_counts(rich: Castle) -> None:
    rich.catch_up()
    lines = found(rich)
    assert {line.status for line in lines.values()} <= {"ok", "not checked"}
    assert failing(rich) == set()
    assert "22 drawers" in lines["drawers"].detail
    assert "1 tombstones" in lines["drawers"].detail
    assert f"schema {SCHEMA_VERSION}" in lines["ledger"].detail


def test_every_table_is_looked_at() -> None:
    named = [name for _, members in standing._groups() for name in members]
    assert sorted([*named, *standing._CHANGES]) == sorted(tables.tables)


def scramble(root: Path) -> None:
    for store in (root / "lexicon").glob("*.store"):
        data = bytearray(store.read_bytes())
        data[random.Random(1).randrange(len(data) // 2)] ^= 0xFF
        store.write_bytes(data)


def remove(root: Path, name: str) -> None:
    (root / name).rename(root.parent / f"taken-{name}")


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("words", scramble),
        ("words", lambda root: remove(root, "lexicon")),
        ("vectors", lambda root: remove(root, "drawers.lance")),
    ],
)
def test_a_damaged_index_fails_and_a_repair_mends_it(
    rich: Castle, part: str, damage: Callable[[Path], None]
) -> None:
    rich.catch_up()
    assert rich.repair()[-1].detail == "nothing was wrong, and nothing was changed"
    rich.close()
    damage(rich.root)
    assert failing(rich) == {part}
    last = rich.repair()[-1]
    assert last.check == "repair"
    assert part in last.detail
    assert failing(rich) == set()
    assert rich.repair()[-1].detail == "nothing was wrong, and nothing was changed"


def test_what_is_late_fails_and_is_counted(rich: Castle) -> None:
    rich.catch_up()
    file(Ledger(rich.root), ["late\n", "later\n"], path="late.md")
    assert failing(rich) == {"words", "vectors"}
    assert found(rich)["words"].detail.startswith("2 changes are not in it yet")
    assert "brought up to date: words, vectors" in rich.repair()[-1].detail


def test_rows_that_point_at_nothing_fail(rich: Castle) -> None:
    rich.catch_up()
    with closing(sqlite3.connect(rich.root / "castle.db")) as cx:
        cx.execute("UPDATE evidence SET drawer = 999999 WHERE drawer IS NOT NULL")
        cx.commit()
    line = found(rich)["graph"]
    assert line.status == "failed"
    assert "1 point at what is not there, first evidence row" in line.detail


def test_a_large_ledger_is_not_looked_through_and_says_so(
    rich: Castle, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich.catch_up()
    monkeypatch.setattr(standing, "PROVEN_BYTES", 10)
    lines = found(rich)
    assert lines["ledger"].status == lines["drawers"].status == "not checked"
    assert "castle verify" in lines["ledger"].detail
    assert lines["words"].status == "ok"


def test_a_held_lock_is_named_and_is_no_fault(rich: Castle) -> None:
    rich.catch_up()
    with FileLock(rich.root / "lexicon.lock") as held:
        assert held
        line = found(rich)["locks"]
    assert line.status == "ok"
    assert "lexicon held by another process" in line.detail
    assert found(rich)["locks"].detail.startswith("all are free")


def test_an_empty_palace(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle._palace(create=True)
        assert failing(castle) == set()
