from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from castle.errors import PalaceBusyError, PalaceError, PalaceNotFoundError, PalaceVersionError, UsageError
from castle.records import Scope
from castle.store.ledger import Ledger
from castle.store.reading import listed
from tests.store.filer import file

WRITER = """
import sys
from pathlib import Path
from castle.store.ledger import Ledger
from tests.store.filer import file
ledger = Ledger(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    file(ledger, [f"{sys.argv[2]} {n}"], path=f"{sys.argv[2]}-{n}.md")
    print(n, flush=True)
"""


def writer(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def texts_of(root: Path) -> list[str]:
    ledger = Ledger(root)
    with ledger.read() as cx:
        found = [drawer.text for drawer in listed(cx, Scope(), 100_000, 0)[1]]
    ledger.close()
    return found


def test_a_palace_is_private(tmp_path: Path) -> None:
    Ledger(tmp_path / "p", create=True).close()
    assert stat.S_IMODE((tmp_path / "p").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "p" / "castle.db").stat().st_mode) == 0o600


def test_a_missing_palace_is_not_made_by_looking_for_it(tmp_path: Path) -> None:
    with pytest.raises(PalaceNotFoundError, match="castle init"):
        Ledger(tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_ledger_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    def stopped() -> dict[str, str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ledger(tmp_path / "p", create=True, first=stopped)
    with pytest.raises(PalaceNotFoundError, match="castle init"):
        Ledger(tmp_path / "p")
    ledger = Ledger(tmp_path / "p", create=True, first=lambda: {"embedder": "one"})
    assert (ledger.value("embedder"), ledger.value("schema_version") is None) == ("one", False)
    ledger.close()


def test_a_ledger_of_a_newer_castle_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path / "p", create=True).close()
    with sqlite3.connect(tmp_path / "p" / "castle.db") as cx:
        cx.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
    cx.close()
    with pytest.raises(PalaceVersionError, match="pip install"):
        Ledger(tmp_path / "p")


def test_a_file_that_is_no_ledger_is_one_line_and_stays_as_it_is(tmp_path: Path) -> None:
    content = b"not a database at all" * 100
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "castle.db").write_bytes(content)
    with pytest.raises(PalaceError, match="castle.db"):
        Ledger(tmp_path / "p")
    assert (tmp_path / "p" / "castle.db").read_bytes() == content


def without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, whom permissions do not stop."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)


def test_a_read_only_palace_is_read_and_refuses_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "p", create=True)
    file(ledger, ["the harbour"])
    ledger.close()
    before = {path.name: path.read_bytes() for path in (tmp_path / "p").iterdir()}
    without_permission(monkeypatch)
    read_only = Ledger(tmp_path / "p")
    with read_only.read() as cx:
        assert [drawer.text for drawer in listed(cx, Scope(), 10, 0)[1]] == ["the harbour"]
    with pytest.raises(PalaceError, match="read-only"), read_only.write():
        pass
    read_only.close()
    assert {path.name: path.read_bytes() for path in (tmp_path / "p").iterdir()} == before


def test_a_read_only_palace_with_unsettled_changes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "p", create=True)
    file(ledger, ["the harbour"])
    assert (tmp_path / "p" / "castle.db-wal").stat().st_size > 0
    without_permission(monkeypatch)
    with pytest.raises(PalaceError, match="copy the palace"):
        Ledger(tmp_path / "p")
    ledger.close()


def test_a_palace_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PalaceError, match="--palace"):
        Ledger(tmp_path / "file" / "p", create=True)


@pytest.mark.parametrize("content", [None, b""])
def test_a_lost_ledger_is_not_replaced_by_an_empty_one(tmp_path: Path, content: bytes | None) -> None:
    root = tmp_path / "p"
    (root / "lexicon").mkdir(parents=True)
    (root / "lexicon" / "kept").write_bytes(b"the last copy")
    if content is not None:
        (root / "castle.db").write_bytes(content)
    with pytest.raises(PalaceError, match="nothing was changed"):
        Ledger(root, create=True)
    assert (root / "lexicon" / "kept").read_bytes() == b"the last copy"
    assert (root / "castle.db").exists() == (content is not None)


def test_a_database_of_something_else_is_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    cx = sqlite3.connect(tmp_path / "p" / "castle.db")
    cx.execute("CREATE TABLE t(x)")
    cx.commit()
    cx.close()
    with pytest.raises(PalaceError, match="not a ledger"):
        Ledger(tmp_path / "p", create=True)
    cx = sqlite3.connect(tmp_path / "p" / "castle.db")
    assert [name for (name,) in cx.execute("SELECT name FROM sqlite_master")] == ["t"]
    cx.close()


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "p", create=True)
    with pytest.raises(RuntimeError), ledger.write() as cx:
        cx.exec_driver_sql("INSERT INTO meta(key, value) VALUES ('half', 'done')")
        raise RuntimeError
    assert ledger.value("half") is None


def test_a_busy_ledger_is_waited_for_and_then_named(tmp_path: Path) -> None:
    holder = Ledger(tmp_path / "p", create=True)
    other = Ledger(tmp_path / "p", patience=0.4)
    with holder.write(), pytest.raises(PalaceBusyError, match="another process"), other.write():
        pass
    with other.write() as cx:
        cx.exec_driver_sql("INSERT INTO meta(key, value) VALUES ('then', 'fine')")
    assert holder.value("then") == "fine"


def test_threads_and_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "p"
    ledger = Ledger(root, create=True)
    processes = [writer(root, name, 40) for name in ("one", "two", "three")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: file(ledger, [f"thread {n}"], path=f"t{n}.md"), range(40)))
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    found = texts_of(root)
    assert len(found) == len(set(found)) == 160


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    root = tmp_path / "p"
    Ledger(root, create=True).close()
    process = writer(root, "killed", 100_000)
    assert process.stdout is not None
    acknowledged = -1
    for line in process.stdout:
        acknowledged = int(line)
        if acknowledged == 60:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.communicate(timeout=60)
    found = texts_of(root)
    assert {f"killed {n}" for n in range(acknowledged + 1)} <= set(found)
    file(Ledger(root), ["after"], path="after.md")


def test_a_ledger_that_was_counted_finds_drawers_by_their_ids(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "palace", create=True)
    file(ledger, [f"harbour {n}" for n in range(50)])
    ledger.analyze()
    query = "EXPLAIN QUERY PLAN SELECT id FROM drawers WHERE id IN ('a', 'b') AND state = 'current'"
    with ledger.read() as cx:
        (plan,) = [row[-1] for row in cx.exec_driver_sql(query)]
    assert "(id=?)" in plan


def test_what_was_counted_in_few_rows_does_not_make_sqlite_read_whole_tables(tmp_path: Path) -> None:
    file(Ledger(tmp_path / "palace", create=True), ["the only drawer"])
    Ledger(tmp_path / "palace").analyze()
    queries = ("drawers WHERE id IN ('a', 'b')", "drawers WHERE source = 1", "sources WHERE key = 'a'")
    with Ledger(tmp_path / "palace").read() as cx:
        for query in queries:
            (plan,) = [r[-1] for r in cx.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT * FROM {query}")]
            assert plan.startswith("SEARCH"), plan


def test_what_is_no_text_is_one_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "p", create=True)
    with pytest.raises(UsageError, match="half a character"), ledger.read() as cx:
        cx.exec_driver_sql("SELECT 1 FROM drawers WHERE id = ?", ("a\udcffb",))
    ledger.close()
