"""Keeps what is costly to compute for a text, in memory and in one SQLite file; both are bounded.

Nothing here is needed: whatever is missing, damaged or locked counts as absent and is computed again. Several
processes may share the file. Where it cannot be written, as in a read-only palace, it is only read; where it
cannot even be read, memory is all there is.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

DISK_BYTES = 128_000_000
"""The most that a file holds, however large the palace is."""

DISK_SHARE = 0.08
"""What a file may hold beside the palace's ledger, as a share of that: a question fills it with 1 MB, and
what only saves time must not outgrow what is kept."""

LEAST_DISK_BYTES = 2_000_000
MEMORY_BYTES = 64_000_000

_VERSION = 1
# How long to wait for another process; computing is not much dearer.
_PATIENCE_SECONDS = 0.1
_PATIENCE_CLEARING_SECONDS = 10.0
# The time of an entry's last use is kept to this precision, so that most searches write nothing.
_USED_SECONDS = 3600
_KEYS_AT_ONCE = 500
_LEDGER = "castle.db"
# A file that is larger than twice its bound and this is thrown away.
_SLACK = 1_000_000
# What is left after making room, so that it is not made for every entry.
_REMAINING = 0.9

_SCHEMA = """
CREATE TABLE entries (key BLOB PRIMARY KEY, used INTEGER, size INTEGER, crc INTEGER, data BLOB);
CREATE INDEX entries_by_use ON entries (used, size);
"""


class TokenCache:
    """Bytes by key, the least recently used given up first. Safe to use from several threads.

    ``path`` is the file, made at the first ``put``; None keeps to memory. The bounds count the bytes of the
    values; without ``disk_bytes`` it is a share of the ledger in the same directory.
    """

    def __init__(
        self, path: Path | None = None, disk_bytes: int | None = None, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self.path = path
        self._given = disk_bytes
        self._memory_most = memory_bytes
        self._memory: OrderedDict[bytes, bytes] = OrderedDict()
        self._memory_size = 0
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return what is kept for these keys, as it was put in."""
        with self._lock:
            wanted = list(dict.fromkeys(keys))
            found = {key: self._memory[key] for key in wanted if key in self._memory}
            for key in found:
                self._memory.move_to_end(key)
            absent = [key for key in wanted if key not in found]
            if absent:
                kept = self._read(absent)
                self._remember(kept)
                found.update(kept)
            return found

    def put(self, entries: Mapping[bytes, bytes]) -> None:
        """Keep these entries; what was kept under their keys goes."""
        if not entries:
            return
        with self._lock:
            self._remember(entries)
            self._write(entries)

    def clear(self) -> None:
        """Erase all entries, so that no deleted text can be guessed from them; a failure is an OSError."""
        with self._lock:
            self._memory.clear()
            self._memory_size = 0
            if not self.disk_bytes():
                return
            try:
                connection = self._open(create=True)
                if connection is None:
                    return
                connection.execute(f"PRAGMA busy_timeout = {int(_PATIENCE_CLEARING_SECONDS * 1000)}")
                with connection:
                    connection.execute("DELETE FROM entries")
                connection.execute(f"PRAGMA busy_timeout = {int(_PATIENCE_SECONDS * 1000)}")
            except sqlite3.OperationalError as error:
                self._close()
                raise OSError(f"cannot erase {self.path}: {error}") from error
            except sqlite3.DatabaseError:
                self._discard()

    def disk_bytes(self) -> int:
        """Return the size of the file, 0 when there is none."""
        try:
            return self.path.stat().st_size if self.path is not None else 0
        except OSError:
            return 0

    def most_on_disk(self) -> int:
        """Return how many bytes of values the file may hold now."""
        if self._given is not None:
            return self._given
        ledger = self.path.with_name(_LEDGER) if self.path is not None else None
        try:
            share = int(DISK_SHARE * ledger.stat().st_size) if ledger is not None else 0
        except OSError:
            share = 0
        return min(DISK_BYTES, max(LEAST_DISK_BYTES, share))

    def memory_bytes(self) -> int:
        """Return the size of the values in memory."""
        return self._memory_size

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._lock:
            self._close()

    def _remember(self, entries: Mapping[bytes, bytes]) -> None:
        for key, data in entries.items():
            self._memory_size += len(data) - len(self._memory.pop(key, b""))
            self._memory[key] = data
        while self._memory_size > self._memory_most:
            _, data = self._memory.popitem(last=False)
            self._memory_size -= len(data)

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        stale: list[bytes] = []
        now = int(time.time())
        try:
            connection = self._open(create=False)
            for start in range(0, len(keys) if connection else 0, _KEYS_AT_ONCE):
                part = keys[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(part))
                select = f"SELECT key, used, crc, data FROM entries WHERE key IN ({marks})"
                assert connection is not None
                for key, used, crc, data in connection.execute(select, part):
                    if isinstance(data, bytes) and zlib.crc32(data, zlib.crc32(key)) == crc:
                        found[key] = data
                        if not isinstance(used, int) or used < now - _USED_SECONDS:
                            stale.append(key)
            if stale and connection:
                with suppress(sqlite3.OperationalError), connection:
                    changes = [(now, key) for key in stale]
                    connection.executemany("UPDATE entries SET used = ? WHERE key = ?", changes)
        except sqlite3.OperationalError:
            self._close()
        except sqlite3.DatabaseError:
            self._discard()
        return found

    def _write(self, entries: Mapping[bytes, bytes]) -> None:
        now = int(time.time())
        rows = [
            (key, now, len(data), zlib.crc32(data, zlib.crc32(key)), data) for key, data in entries.items()
        ]
        try:
            connection = self._open(create=True)
            if connection is None:
                return
            with connection:
                connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
                self._make_room(connection)
            if self.disk_bytes() > 2 * self.most_on_disk() + _SLACK:
                self._discard()  # the bound was larger when the file grew, and SQLite gives nothing back
        except sqlite3.OperationalError:  # locked, read-only or full
            self._close()
        except sqlite3.DatabaseError:
            self._discard()

    def _make_room(self, connection: sqlite3.Connection) -> None:
        most = self.most_on_disk()
        (size,) = connection.execute("SELECT TOTAL(size) FROM entries").fetchone()
        if size <= most:
            return
        by_use = "SELECT rowid, CAST(size AS INTEGER) FROM entries ORDER BY used, rowid"
        gone = []
        for rowid, each in connection.execute(by_use).fetchall():
            if size <= most * _REMAINING:
                break
            gone.append((rowid,))
            size -= each or 0
        connection.executemany("DELETE FROM entries WHERE rowid = ?", gone)

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        """Return the open file, None when there is none; raises what SQLite raises."""
        if self._connection is not None or self.path is None or self.path.is_symlink():
            return self._connection
        if not create and not self.disk_bytes():
            return None
        mode = "rwc" if create else "rw"
        try:
            self._connection = self._connect(mode)
        except sqlite3.OperationalError:
            if not self.disk_bytes():
                raise
            self._connection = self._connect("ro")
        return self._connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        assert self.path is not None
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_PATIENCE_SECONDS,
            check_same_thread=False,
        )
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != _VERSION and mode != "ro":
                self._create(connection)
            # Losing the last entries in a power cut is no loss; what is damaged is found by its checksum.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("SELECT key, used, size, crc, data FROM entries LIMIT 0")
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == _VERSION:  # another process was first
                return
            connection.execute("DROP TABLE IF EXISTS entries")
            for statement in _SCHEMA.strip().split("\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        if self.path is not None:
            with suppress(OSError):
                self.path.chmod(0o600)

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _discard(self) -> None:
        """Throw a file away that SQLite cannot read."""
        self._close()
        if self.path is not None:
            # The journal first: it would be played back into the next file.
            for path in (self.path.with_name(f"{self.path.name}-journal"), self.path):
                with suppress(OSError):
                    path.unlink()
