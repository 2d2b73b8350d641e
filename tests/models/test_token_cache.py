"""A cache on disk and in memory that is bounded, shared, and never in the way."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from castle.models.token_cache import DISK_BYTES, LEAST_DISK_BYTES, TokenCache


def _keys(path: Path) -> list[bytes]:
    connection = sqlite3.connect(path)
    keys = [key for (key,) in connection.execute("SELECT key FROM entries ORDER BY used, rowid")]
    connection.close()
    return keys


def test_the_file_is_bounded_by_the_ledger_beside_it(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path / "tokens.db")
    assert cache.most_on_disk() == LEAST_DISK_BYTES
    with (tmp_path / "castle.db").open("wb") as ledger:
        ledger.truncate(100_000_000)
    assert cache.most_on_disk() == 8_000_000
    with (tmp_path / "castle.db").open("wb") as ledger:
        ledger.truncate(100_000_000_000)
    assert cache.most_on_disk() == DISK_BYTES


def test_a_file_that_has_outgrown_its_bound_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castle.models.token_cache._SLACK", 0)
    TokenCache(tmp_path / "tokens.db", disk_bytes=1_000_000).put({b"a": bytes(500_000)})
    smaller = TokenCache(tmp_path / "tokens.db", disk_bytes=100_000)
    smaller.put({b"b": bytes(10)})
    assert smaller.disk_bytes() == 0
    smaller.put({b"b": bytes(10)})
    assert set(TokenCache(tmp_path / "tokens.db").get([b"a", b"b"])) == {b"b"}


def test_both_bounds_hold_and_the_last_used_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("castle.models.token_cache.time.time", lambda: now)
    cache = TokenCache(tmp_path / "tokens.sqlite3", disk_bytes=10_000, memory_bytes=3_000)
    for number in range(10):
        now += 7200
        cache.put({bytes([number]): bytes(1000)})
    now += 7200
    assert set(TokenCache(cache.path).get([b"\0", b"\1"])) == {b"\0", b"\1"}
    now += 7200
    cache.put({b"new": bytes(1000)})
    assert cache.memory_bytes() <= 3_000
    kept = _keys(tmp_path / "tokens.sqlite3")
    assert len(kept) == 9
    assert {b"\0", b"\1", b"new"} <= set(kept)
    assert b"\2" not in kept
    size = cache.disk_bytes()
    for number in range(200):
        cache.put({b"%d" % number: bytes(1000)})
    assert cache.disk_bytes() < 2 * size
    assert cache.get([b"199", b"absent"]) == {b"199": bytes(1000)}


def test_an_entry_larger_than_the_bounds_is_not_kept(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path / "tokens.sqlite3", disk_bytes=100, memory_bytes=100)
    cache.put({b"key": bytes(1000)})
    assert cache.memory_bytes() == 0
    assert cache.get([b"key"]) == {}


def test_cleared_entries_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "tokens.sqlite3"
    cache = TokenCache(path)
    cache.clear()
    assert not path.exists()
    cache.put({b"key": b"a trace of a secret" * 400})
    assert b"a trace" in path.read_bytes()
    cache.clear()
    assert b"a trace" not in path.read_bytes()
    assert cache.memory_bytes() == 0
    assert cache.get([b"key"]) == {}


_READER = """
import os, sys
from pathlib import Path
from castle.models.token_cache import DISK_BYTES, LEAST_DISK_BYTES, TokenCache
if os.getuid() == 0:
    os.setuid(65534)
cache = TokenCache(Path(sys.argv[1]))
assert cache.get([b"key"]) == {b"key": b"value"}
cache.put({b"more": b"values"})
assert cache.get([b"more"]) == {b"more": b"values"}
try:
    cache.clear()
except OSError as error:
    print(error)
"""


def test_a_file_that_cannot_be_written_is_still_read() -> None:
    # Not below pytest's own directory, which other users, as whom root has to read, may not enter.
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "tokens.sqlite3"
        TokenCache(path).put({b"key": b"value"})
        before = path.read_bytes()
        path.chmod(0o444)
        path.parent.chmod(0o555)
        command = [sys.executable, "-c", _READER, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        path.parent.chmod(0o755)
        assert done.returncode == 0, done.stderr
        assert "cannot erase" in done.stdout
        assert path.read_bytes() == before


def test_no_place_on_disk_is_no_failure(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "tokens.sqlite3", tmp_path, None):
        cache = TokenCache(path)
        cache.put({b"key": b"value"})
        assert cache.get([b"key"]) == {b"key": b"value"}
        cache.close()
    assert TokenCache(None).disk_bytes() == 0


def test_another_writer_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "tokens.sqlite3"
    cache = TokenCache(path)
    cache.put({b"key": b"value"})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache.put({b"more": b"values"})
    assert cache.get([b"more"]) == {b"more": b"values"}
    assert TokenCache(path).get([b"key"]) == {}
    other.execute("ROLLBACK")
    other.close()
    assert TokenCache(path).get([b"key"]) == {b"key": b"value"}


_WRITER = """
import sys
from pathlib import Path
from castle.models.token_cache import DISK_BYTES, LEAST_DISK_BYTES, TokenCache
cache = TokenCache(Path(sys.argv[1]), disk_bytes=200_000)
for number in range(200):
    key = b"%d" % (number % 50)
    cache.put({key: key * 1000})
    for name, data in TokenCache(Path(sys.argv[1])).get([b"%d" % n for n in range(50)]).items():
        assert data == name * 1000
"""


def test_several_processes_and_threads_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.sqlite3"
    command = [sys.executable, "-c", _WRITER, str(path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    cache = TokenCache(path)

    def use(start: int) -> None:
        for number in range(start, start + 100):
            key = b"%d" % (number % 50)
            cache.put({key: key * 1000})
            assert cache.get([key]) == {key: key * 1000}

    threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
