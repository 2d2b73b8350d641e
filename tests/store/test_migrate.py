"""A ledger of an earlier schema is brought to this one once, whole or not at all, with a copy beside it."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import PalaceError, PalaceVersionError
from castle.store import migrate
from castle.store.filing import drawer_id
from castle.store.ledger import Ledger
from castle.store.migrate import copies
from castle.store.schema import SCHEMA_VERSION
from castle.text.secrets import DETECTOR_VERSION

FIRST_SCHEMA = Path(__file__).with_name("schema_1.sql")
TEXT = "The ferry leaves at noon.\n"


def make_first(root: Path) -> Path:
    """Make a palace as the first schema had it, with one drawer; return its ledger."""
    root.mkdir(mode=0o700)
    path = root / "castle.db"
    digest = hashlib.sha256(TEXT.encode()).digest()
    id_ = drawer_id("file:a.md", TEXT.encode(), 0)
    with closing(sqlite3.connect(path)) as cx:
        cx.execute("PRAGMA journal_mode=WAL")
        cx.executescript(FIRST_SCHEMA.read_text(encoding="utf-8"))
        cx.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("schema_version", "1"),
                ("epoch", "0" * 16),
                ("salt", "1" * 64),
                ("seq", "1"),
                ("created_at", "1"),
                ("embedder", '{"name":"fake","dim":64,"identity":"fake-hashing-64/1"}'),
            ],
        )
        cx.execute("INSERT INTO lineage VALUES (1, 'abcdefabcdef')")
        cx.execute(
            "INSERT INTO sources VALUES (1, 'file:a.md', 'file', NULL, 'a.md', 'a.md', 'w', 'r', 1, '', "
            "NULL, NULL)"
        )
        cx.execute(
            "INSERT INTO revisions VALUES (1, 1, ?, ?, '', 'test/1', 'utf-8', 5, 5, 'ann', 'complete')",
            (digest, len(TEXT)),
        )
        cx.execute(
            "INSERT INTO drawers VALUES (1, ?, 1, 1, 'w', 'r', '', 'file', '', '', '', ?, NULL, ?, NULL, ?, "
            "'', 5, 5, NULL, 'ann', 'current', NULL)",
            (id_, TEXT, digest, DETECTOR_VERSION),
        )
        cx.execute("INSERT INTO membership VALUES (1, 1, 0, NULL, 1, 0, ?, 1, 1)", (len(TEXT),))
        cx.commit()
    path.chmod(0o600)
    return path


def tables_of(path: Path) -> dict[str, str]:
    """Return what every table and index is made by, whatever the blanks."""
    with closing(sqlite3.connect(path)) as cx:
        rows = cx.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        )
        return {name: "".join(sql.split()).replace('"', "") for name, sql in rows}


def version_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as cx:
        return str(cx.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])


def test_a_migrated_ledger_is_one_that_was_made_today(tmp_path: Path) -> None:
    old = make_first(tmp_path / "old")
    Ledger(tmp_path / "old").close()
    Ledger(tmp_path / "new", create=True).close()
    assert tables_of(old) == tables_of(tmp_path / "new" / "castle.db")
    assert version_of(old) == str(SCHEMA_VERSION)


def test_every_version_has_its_migration() -> None:
    assert sorted(migrate._migrations) == list(range(2, SCHEMA_VERSION + 1))


def test_what_an_old_palace_holds_is_found_and_a_copy_is_beside_it(tmp_path: Path) -> None:
    make_first(tmp_path / "old")
    with Castle(tmp_path / "old") as castle:
        assert castle.search("ferry", mode="fast").hits[0].text == TEXT
        assert {finding.status for finding in castle.repair()} == {"ok"}
        castle.pin(castle.search("ferry", mode="fast").hits[0].id)
    (copy,) = copies(tmp_path / "old")
    assert version_of(copy) == "1"
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as cx:
        assert cx.execute("SELECT text FROM drawers").fetchall() == [(TEXT,)]
        assert cx.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_only_the_last_two_copies_are_kept(tmp_path: Path) -> None:
    path = make_first(tmp_path / "old")
    for now in (3, 1_000_000, 20):
        with closing(sqlite3.connect(path)) as cx:
            cx.execute("UPDATE meta SET value = '1' WHERE key = 'schema_version'")
            cx.commit()
        Ledger(tmp_path / "old", clock=lambda now=now: now).close()  # type: ignore[misc]
    assert [file.name for file in copies(tmp_path / "old")] == [
        f"schema-1.{n:020d}.db" for n in (20, 1_000_000)
    ]


def test_a_read_only_palace_of_the_first_schema_is_searched_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_first(tmp_path / "old")
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with Castle(tmp_path / "old") as castle:
        assert [hit.text for hit in castle.search("ferry", mode="fast").hits] == [TEXT]
        assert castle.status().drawers == 1
        ledger = {f.check: f for f in castle.repair_status()}["ledger"]
        assert ledger.status == "failed"
        assert "schema 1 is older" in ledger.detail
    assert path.read_bytes() == before


def test_a_read_only_palace_that_is_too_old_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_first(tmp_path / "old")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(migrate, "READABLE_FROM", 2)
    with pytest.raises(PalaceVersionError, match="schema 1 and is read-only: copy the palace"):
        Ledger(tmp_path / "old")


@pytest.mark.parametrize("stored", ["", "x", "0", "-3"])
def test_a_ledger_that_does_not_say_its_schema_is_left_alone(tmp_path: Path, stored: str) -> None:
    path = make_first(tmp_path / "old")
    with closing(sqlite3.connect(path)) as cx:
        cx.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (stored,))
        cx.commit()
    before = tables_of(path)
    with pytest.raises(PalaceError, match="does not say which schema"):
        Ledger(tmp_path / "old")
    assert tables_of(path) == before


def test_without_room_for_the_copy_nothing_is_changed(tmp_path: Path) -> None:
    path = make_first(tmp_path / "old")
    (tmp_path / "old" / "backups").write_bytes(b"in the way")
    before = tables_of(path)
    with pytest.raises(PalaceError, match="no copy of it could be put into .*make room"):
        Ledger(tmp_path / "old")
    assert tables_of(path) == before
    assert version_of(path) == "1"


def test_a_migration_that_fails_leaves_the_old_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_first(tmp_path / "old")
    before = tables_of(path)

    def fails(cx: object) -> None:
        original(cx)  # type: ignore[arg-type]
        raise RuntimeError

    original = migrate._migrations[SCHEMA_VERSION]
    monkeypatch.setitem(migrate._migrations, SCHEMA_VERSION, fails)
    with pytest.raises(RuntimeError):
        Ledger(tmp_path / "old")
    assert tables_of(path) == before
    assert version_of(path) == "1"


OPENER = """
import sys
from pathlib import Path
from castle.store.ledger import Ledger
print("ready", flush=True)
sys.stdin.readline()
Ledger(Path(sys.argv[1])).close()
"""


def opener(root: Path, code: str = OPENER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_processes_that_open_at_once_migrate_once(tmp_path: Path) -> None:
    path = make_first(tmp_path / "old")
    processes = [opener(tmp_path / "old") for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        _, errors = process.communicate("go\n", timeout=120)
        assert process.returncode == 0, errors
    assert version_of(path) == str(SCHEMA_VERSION)
    assert len(copies(tmp_path / "old")) == 1


HALTS = """
import sys, time
from pathlib import Path
from castle.store import migrate
from castle.store.ledger import Ledger
version, point = max(migrate._migrations), sys.argv[2]
original = migrate._migrations[version]
def halts(cx):
    original(cx)
    print("halfway", flush=True)
    time.sleep(600)
def halts_copying(path, target):
    target.parent.mkdir(exist_ok=True)
    target.with_suffix(".draft").write_bytes(path.read_bytes()[:4096])
    print("halfway", flush=True)
    time.sleep(600)
if point == "migrating":
    migrate._migrations[version] = halts
else:
    migrate._copy = halts_copying
Ledger(Path(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
@pytest.mark.parametrize("point", ["migrating", "copying"])
def test_a_kill_in_the_middle_leaves_the_old_schema(tmp_path: Path, point: str) -> None:
    path = make_first(tmp_path / "old")
    before = tables_of(path)
    process = subprocess.Popen(
        [sys.executable, "-c", HALTS, str(tmp_path / "old"), point],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "halfway\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert tables_of(path) == before
    assert version_of(path) == "1"
    Ledger(tmp_path / "old").close()
    assert version_of(path) == str(SCHEMA_VERSION)
    assert list((tmp_path / "old" / "backups").glob("*.draft*")) == []
