"""What a palace takes on disk stays bounded by what it holds, and counting costs no look at every drawer."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

import castle.store.vectors as module
from castle import Castle
from castle.records import Scope
from castle.store.filing import Filing, Place
from castle.store.palace import Palace
from castle.store.places import forget
from castle.store.reading import counts, list_sources, listed
from castle.store.status import status
from tests.store.filer import chunks, file

WORDS = "harbour ship crane rope tide anchor gull storm quay lamp keeper ferry net salt chart".split()
RETENTION = 1.0


@dataclass(frozen=True)
class Size:
    """What the indexes take: LanceDB's versions, fragments, files and bytes, and Tantivy's segments."""

    rows: int
    versions: int
    fragments: int
    files: int
    bytes: int
    live_bytes: int
    segments: int


def size_of(root: Path) -> Size:
    palace = Palace(root, embedder="fake")
    try:
        vectors = palace.vectors
        stats = vectors._open().stats()
        return Size(
            rows=stats["num_rows"],
            versions=sum(1 for _ in vectors.directory.glob("_versions/*.manifest")),
            fragments=stats["fragment_stats"]["num_fragments"],
            files=sum(1 for file in vectors.directory.rglob("*") if file.is_file()),
            bytes=vectors.disk_bytes(),
            live_bytes=stats["total_bytes"],
            segments=len(json.loads((root / "lexicon" / "meta.json").read_bytes())["segments"]),
        )
    finally:
        palace.close()


def settle(write: Callable[[], object]) -> None:
    """Let everything be past its retention, and write once more."""
    time.sleep(RETENTION + 0.1)
    write()


def assert_bounded(size: Size) -> None:
    """Hold the bounds that ``Vectors`` states, with one write that came after the last look at them."""
    assert size.versions <= module.STALE_VERSIONS + size.rows // module.ROWS_PER_VERSION + 2
    assert size.fragments <= module.FRAGMENTS + size.rows // module.FULL_FRAGMENT + 1
    assert size.bytes <= 2 * size.live_bytes + module.STALE_BYTES
    assert size.files <= module.FILES * (module.STALE_VERSIONS + size.fragments + 2)
    # Tantivy joins eight segments of a size at a time.
    assert size.segments <= 8 * (1 + len(f"{size.rows:o}"))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep versions for a second, so that their bounds come into force within a test."""
    monkeypatch.setattr(module, "RETENTION", timedelta(seconds=RETENTION))


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set bounds that a short test meets."""
    monkeypatch.setattr(module, "FRAGMENTS", 12)
    monkeypatch.setattr(module, "STALE_VERSIONS", 16)
    monkeypatch.setattr(module, "STALE_BYTES", 1_000_000)


def write_one_by_one(root: Path, count: int) -> None:
    with Castle(root, embedder="fake") as castle:

        def write(number: int) -> None:
            castle.add(f"note {number} of the {WORDS[number % 15]}", wing="w", room="r")

        write(0)
        castle.search("harbour", mode="fast")
        for number in range(1, count - 1):
            write(number)
        settle(lambda: write(count - 1))
        assert castle.status().drawers == count
        assert all(not part.behind for part in castle.status().projections)
        for number in (0, count // 2, count - 1):
            text = f"note {number} of the {WORDS[number % 15]}"
            assert text in [hit.text for hit in castle.search(text, mode="fast", limit=20).hits]
    assert_bounded(size_of(root))


@pytest.mark.slow
@pytest.mark.usefixtures("hasty", "strict")
def test_single_writes_stay_bounded(tmp_path: Path) -> None:
    write_one_by_one(tmp_path / "palace", 60)


def mine_again_and_again(tmp_path: Path, files: int, runs: int) -> None:
    """Change a tenth of a tree's files before each run, and take one away or put one in."""
    chance = random.Random(1)
    tree, root = tmp_path / "tree", tmp_path / "palace"
    tree.mkdir()

    def change(name: str) -> None:
        lines = [" ".join(chance.choices(WORDS, k=12)) for _ in range(chance.randint(4, 40))]
        (tree / name).write_text("\n\n".join(lines) + "\n", encoding="utf-8")

    names = [f"note{number}.md" for number in range(files)]
    for name in names:
        change(name)
    with Castle(root, embedder="fake") as castle:
        for run in range(runs):
            for name in chance.sample(names, max(1, files // 10)):
                change(name)
            change(f"new{run}.md")
            (tree / f"new{run - 3}.md").unlink(missing_ok=True)
            castle.mine(tree)
            if run % 5 == 0:
                castle.sync(tree, apply=True)

        def last() -> None:
            change("last.md")
            castle.mine(tree)

        settle(last)
        assert {finding.status for finding in castle.verify()} == {"ok"}
    assert_bounded(size_of(root))


@pytest.mark.usefixtures("hasty", "strict")
def test_mining_a_changed_tree_again_stays_bounded(tmp_path: Path) -> None:
    mine_again_and_again(tmp_path, 12, 8)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("hasty")
def test_mining_a_changed_tree_fifty_times_stays_bounded(tmp_path: Path) -> None:
    mine_again_and_again(tmp_path, 100, 50)


# Counting


@pytest.fixture
def counted(palace: Palace) -> Palace:
    """A palace with drawers of every state, and some that are only staged."""
    for source in range(20):
        wing, room = f"wing{source % 3}", f"room{source % 2}"
        kind = "tool" if source % 5 == 0 else "prose"
        texts = [f"{source} {n}" for n in range(10)]
        file(palace.ledger, texts, path=f"{source}.md", wing=wing, room=room, kind=kind)
        if source % 4 == 0:
            file(palace.ledger, texts[:7], path=f"{source}.md", wing=wing, room=room, kind=kind, base=1)
    forget(palace.ledger, source="3.md", actor="me")
    place = Place("file:staged", "file", "staged", "staged", "wing0", "room0")
    with palace.ledger.write() as cx:
        Filing(palace.ledger, place, 0).stage(cx, chunks(["not yet", "nor this"]), "me")
    palace.ledger.analyze()
    return palace


def plans(cx: Connection, work: Callable[[], object]) -> list[str]:
    """Return how SQLite goes about each statement of ``work``."""
    statements: list[tuple[str, object]] = []

    def note(_cx: object, _cursor: object, statement: str, values: object, *_: object) -> None:
        statements.append((statement, values))

    event.listen(cx.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(cx.engine, "before_cursor_execute", note)
    found = []
    for statement, values in statements:
        for row in cx.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values):  # type: ignore[arg-type]
            found.append(str(row[3]))
    assert found
    return found


def test_counts_are_those_of_a_look_at_every_drawer(counted: Palace) -> None:
    with counted.ledger.read() as cx:
        found = {(p.wing, p.room): (p.current, p.superseded, p.forgotten) for p in counts(cx)}
        statement = "SELECT wing, room, state FROM drawers WHERE seq IS NOT NULL"
        rows = [(wing, room, state) for wing, room, state in cx.exec_driver_sql(statement)]
        states = ("current", "superseded", "forgotten")
        wanted = {(w, r): tuple(rows.count((w, r, s)) for s in states) for w, r, _ in rows}
        assert found == wanted
        for scope in (Scope(), Scope(wing="wing0"), Scope(wing="wing1", room="room1"), Scope(room="room0")):
            total, page = listed(cx, scope, 1000, 0)
            assert total == len(page) > 0
            assert [d.id for d in listed(cx, scope, 7, 5)[1]] == [d.id for d in page[5:12]]
            whole = listed(cx, replace(scope, history=True, kinds=("tool", "prose")), 1000, 0)[1]
            ordinary = [d.id for d in whole if d.state == "current" and d.kind == "prose"]
            assert [d.id for d in page] == ordinary


def test_status_counts_from_indexes(counted: Palace) -> None:
    with counted.ledger.read() as cx:
        for step in [*plans(cx, lambda: status(counted)), *plans(cx, lambda: counts(cx))]:
            assert "drawers" not in step or "COVERING INDEX" in step or step.startswith("SEARCH"), step


def test_a_page_costs_what_stands_on_it(counted: Palace) -> None:
    with counted.ledger.read() as cx:
        steps = plans(cx, lambda: listed(cx, Scope(), 5, 0))
        assert not any("TEMP B-TREE" in step for step in steps), steps
        counting = plans(cx, lambda: listed(cx, Scope(wing="wing1"), 5, 0))
        assert any("ix_drawers_recent (wing=?)" in step for step in counting), counting
        for step in plans(cx, lambda: list_sources(cx, None, 5, 0)):
            assert "drawers" not in step


def test_a_ledger_without_the_index_of_ordinary_drawers_is_counted_all_the_same(counted: Palace) -> None:
    with closing(sqlite3.connect(counted.ledger.path)) as cx:
        cx.execute("DROP INDEX ix_drawers_recent")
        cx.commit()
    with counted.ledger.read() as cx:
        total, page = listed(cx, Scope(wing="wing1"), 1000, 0)
        assert total == len(page) > 0
