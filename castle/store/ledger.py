"""The ledger: one SQLite database that is the record of everything filed.

``Ledger.write()`` is one ``BEGIN IMMEDIATE`` transaction, kept short; ``Ledger.read()`` is one consistent
snapshot. A writer that finds the database busy tries again with jitter until ``patience`` seconds are over.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.schema import CreateIndex, CreateTable

from castle.clock import Clock, system_clock
from castle.errors import PalaceBusyError, PalaceError, PalaceNotFoundError, UsageError
from castle.store import (  # noqa: F401  (each declares its tables)
    closet_tables,
    entity_tables,
    graph_tables,
    mind_tables,
    novelty_tables,
    purge_tables,
    receipt_tables,
    reveal_tables,
    session_tables,
    tunnel_tables,
    use_tables,
)
from castle.store import migrate as migrations
from castle.store.native import is_full
from castle.store.schema import SCHEMA_VERSION, tables

FILE_NAME = "castle.db"
PATIENCE_SECONDS = 30.0
_BUSY_MS = 200
# The least size of the file of shared memory when it is in use; on a full disk less of it may be left.
_SHARED = 32_768
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_IN_LIMIT = 500
_ANALYZED_ROWS = 1000
_HASTY_SECONDS = 1.0

T = TypeVar("T")


class Ledger:
    """The open ledger of one palace; safe to use from several threads and processes at once.

    One of an earlier schema is migrated first; where it cannot be written, it is read as it is. ``first``
    gives the rows of ``meta`` that a new one begins with; when it raises, no ledger is made.

    Raises PalaceNotFoundError when there is none at ``root`` and ``create`` is false, PalaceVersionError
    when a newer Castle wrote it, PalaceError when the file is not a readable ledger.
    """

    def __init__(
        self,
        root: Path,
        *,
        create: bool = False,
        clock: Clock = system_clock,
        patience: float = PATIENCE_SECONDS,
        first: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.root = root
        self.path = root / FILE_NAME
        self.clock = clock
        self._first = first
        self.patience = patience
        try:
            if not root.exists():
                from castle.store.restoring import finish_stopped

                finish_stopped(root)
            if not create and not self.path.is_file():
                raise _not_found(root)
            if create:
                _refuse_orphans(root, self.path)
                _make_private(root, self.path)
        except OSError as error:
            why, verb = error.strerror or error, "made" if create else "opened"
            raise PalaceError(
                f"no palace can be {verb} at {root}: {why}; name another with --palace"
            ) from error
        self._identity = _identity(self.path)
        self.read_only = not os.access(root, os.W_OK) or not os.access(self.path, os.W_OK)
        if self.read_only:
            _check_settled(self.path)
        self._full = False
        self._engine = _engine(self.path, self.read_only)
        try:
            self._open(create)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _open(self, create: bool) -> None:
        """Check the schema; open it to be read where SQLite has no room beside it, as it needs even to read.

        That is possible where nobody else has it open and nothing stands in its WAL. On a disk that was full
        writing is tried again once there is room.
        """
        try:
            self._check_schema(create)
        except PalaceError as error:
            if create or self.read_only or not _has_no_room(error) or _in_use(self.path):
                raise
            self.close()
            self.read_only, self._full = True, is_full(self.root)
            self._engine = _engine(self.path, True)
            self._check_schema(False)

    def analyze(self) -> None:
        """Let SQLite count, so that it looks drawers up by their ids rather than by what most of them share.

        What it counts in a table of few rows is dropped: by that it would read the whole table for every
        source that is filed next, however many come. Takes milliseconds whatever the size; raises
        PalaceBusyError.
        """
        with self.write(_HASTY_SECONDS) as cx:
            cx.exec_driver_sql(f"PRAGMA analysis_limit={_ANALYZED_ROWS}")
            cx.exec_driver_sql("ANALYZE")
            # A row begins with the number of rows in the table.
            cx.exec_driver_sql(f"DELETE FROM sqlite_stat1 WHERE CAST(stat AS INTEGER) < {_ANALYZED_ROWS}")
            cx.exec_driver_sql("ANALYZE sqlite_schema")

    def compact(self, patience: float) -> None:
        """Write the ledger anew, so that no page keeps what was deleted, and empty its WAL.

        Nobody can write meanwhile. Raises PalaceBusyError when others were in the way for ``patience``
        seconds: a transaction of theirs may need what would be thrown away.
        """
        deadline = time.monotonic() + patience
        with self._guard(), closing(_connect(f"{self.path.resolve().as_uri()}?mode=rw")) as connection:
            # Not in memory, as temporary tables are elsewhere: it may be as large as the ledger.
            connection.execute("PRAGMA temp_store=FILE")
            connection.execute("PRAGMA secure_delete=ON")
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                while not _done(connection, statement):
                    if time.monotonic() > deadline:
                        raise PalaceBusyError(
                            f"{self.path} was in use for {patience:.0f} s: end what reads or writes it, such "
                            "as agents, and run the command again"
                        )
                    time.sleep(random.uniform(0.02, 0.1))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one snapshot of the ledger."""
        with self._guard(), self._engine.connect() as cx:
            run(cx, "BEGIN")
            try:
                self._must_stand()
                yield cx
            finally:
                _roll_back(cx)

    def unwritable(self) -> str:
        """Return why nothing can be written, "" when it can; a disk that was full is looked at again."""
        if self._full and not is_full(self.root):
            self.close()
            self.read_only = self._full = False
            self._engine = _engine(self.path, False)
        if not self.read_only:
            return ""
        return f"the {'disk of the palace' if self._full else 'palace'} at {self.root} is " + (
            "full" if self._full else "read-only"
        )

    @contextmanager
    def write(self, patience: float | None = None) -> Iterator[Connection]:
        """Give the one writing connection; commits at the end, rolls back on any exception.

        Raises PalaceBusyError when other processes kept the ledger for longer than ``patience`` seconds, the
        ledger's own unless another is given.
        """
        if why := self.unwritable():
            raise PalaceError(f"{why}: nothing can be written to it")
        with self._guard(), self._engine.connect() as cx:
            self._begin_immediate(cx, self.patience if patience is None else patience)
            try:
                self._must_stand()
                yield cx
                cx.exec_driver_sql("COMMIT")
            except BaseException:
                _roll_back(cx)
                raise

    def lineage(self, seq: int) -> str:
        """Return what a projection that has reached ``seq`` must carry: the epoch and that change's token.

        A ledger that was put back from an older copy and written again has other tokens after that copy.
        """
        with self.read() as cx:
            return lineage_at(cx, seq)

    def head(self) -> int:
        """Return the number of the last change."""
        return int(self.value("seq") or 0)

    def value(self, key: str) -> str | None:
        """Return one row of the ``meta`` table, None where there is none."""
        with self.read() as cx:
            return get_value(cx, key)

    def _begin_immediate(self, cx: Connection, patience: float) -> None:
        deadline = time.monotonic() + patience
        pause = 0.005
        while True:
            try:
                cx.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except DBAPIError as error:
                if not _is_busy(error):
                    raise
                if time.monotonic() > deadline:
                    raise PalaceBusyError(
                        f"{self.path} was busy for {patience:.1f} s: another process is writing; "
                        "run the command again"
                    ) from error
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 0.25)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn what SQLite says about the file into one line for the user."""
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if isinstance(cause, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            if is_full(self.root):
                raise PalaceError(f"{self.path} cannot be used: the disk is full") from error
            raise PalaceError(f"{self.path}: {cause}") from error
        except UnicodeEncodeError as error:
            # Without the text, which may be a drawer's.
            raise UsageError("what was given holds half a character: it is no text") from error
        except UnicodeDecodeError as error:
            # What SQLite says of a damaged schema quotes it.
            raise PalaceError(f"{self.path}: malformed: {error}") from error

    def _check_schema(self, create: bool) -> None:
        with self.write() if create else self.read() as cx:
            known = cx.exec_driver_sql(
                "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
            ).first()
            if known is None:
                foreign = cx.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").first()
                if foreign is None and not create:
                    # Whoever made it was stopped before the first transaction ended.
                    raise _not_found(self.root)
                if foreign is not None:
                    raise PalaceError(f"{self.path} is not a ledger of Castle; nothing was changed")
                for statement in _definitions():
                    run(cx, statement)
                set_value(cx, "schema_version", str(SCHEMA_VERSION))
                set_value(cx, "epoch", secrets.token_hex(8))
                set_value(cx, "salt", secrets.token_hex(32))
                set_value(cx, "seq", "0")
                set_value(cx, "created_at", str(self.clock()))
                for key, value in self._first().items():
                    set_value(cx, key, value)
            version = migrations.schema_of(cx, self.path)
        if version == SCHEMA_VERSION:
            return
        if self.read_only:
            migrations.refuse_unreadable(version, self.path)
            return
        with self.write(migrations.PATIENCE_SECONDS) as cx:
            migrations.migrate(cx, self.path, self.clock())

    def _must_stand(self) -> None:
        """Refuse to go on once another ledger has taken the place of the one that was opened.

        A connection that is made later would be to that other one, whose numbers mean other drawers.
        """
        if _identity(self.path) != self._identity:
            raise PalaceError(
                f"{self.path} was moved away or replaced while it was in use: run the command again, on what "
                "stands there now; in Python, open it anew"
            )


@cache
def _definitions() -> tuple[str, ...]:
    """Return the statements that make all tables and indexes; to write them takes longer than to run them."""
    made: list[CreateTable | CreateIndex] = []
    for table in tables.sorted_tables:
        made += [CreateTable(table), *map(CreateIndex, table.indexes)]
    return tuple(str(element.compile(dialect=sqlite.dialect())) for element in made)


def run(cx: Connection, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
    """Run a statement in the transaction of a connection without SQLAlchemy around it; return its cursor.

    For what is run for every source or drawer: around such a statement SQLAlchemy takes ten times as long as
    the statement. Raises sqlite3.Error.
    """
    connection = cast("sqlite3.Connection", cx.connection.driver_connection)
    return connection.execute(statement, values)


def run_many(cx: Connection, statement: str, rows: Iterable[Sequence[object]]) -> None:
    """Run a statement for each of the rows, as ``run`` does for one."""
    connection = cast("sqlite3.Connection", cx.connection.driver_connection)
    connection.executemany(statement, rows)


def marks(values: Sequence[object]) -> str:
    """Return the place holders of a statement for some values."""
    return ", ".join("?" * len(values))


def get_value(cx: Connection, key: str) -> str | None:
    """Return the value of ``key`` in the ``meta`` table."""
    row = run(cx, "SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def lineage_at(cx: Connection, seq: int) -> str:
    """Return ``Ledger.lineage`` as a transaction sees it."""
    query = "SELECT token FROM lineage WHERE seq >= ? ORDER BY seq LIMIT 1"
    row = run(cx, query, (seq,)).fetchone() if seq else ("",)
    return f"{get_value(cx, 'epoch')}:{None if row is None else row[0]}"


def set_value(cx: Connection, key: str, value: str) -> None:
    """Set ``key`` in the ``meta`` table."""
    change = (
        "INSERT INTO meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
    )
    run(cx, change, (key, value))


def next_seqs(cx: Connection, count: int) -> int:
    """Take ``count`` consecutive change numbers inside a write transaction and return the first."""
    first = int(get_value(cx, "seq") or 0) + 1
    last = first + count - 1
    set_value(cx, "seq", str(last))
    run(cx, "INSERT INTO lineage(seq, token) VALUES (?, ?)", (last, secrets.token_hex(6)))
    return first


def batches(items: Sequence[T], size: int = _IN_LIMIT) -> Iterator[Sequence[T]]:
    """Cut a sequence into pieces that fit one SQL statement."""
    return (items[i : i + size] for i in range(0, len(items), size))


def to_json(value: object) -> str:
    """Write JSON the way the ledger stores it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _not_found(root: Path) -> PalaceNotFoundError:
    return PalaceNotFoundError(
        f"no palace at {root}: make one with `castle init DIR` or `castle mine DIR`, or name another with "
        "--palace"
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _make_private(root: Path, file: Path) -> None:
    made = not root.exists()
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    if made or not any(root.iterdir()):
        root.chmod(0o700)
    if not file.exists():
        file.touch(mode=0o600)


def _refuse_orphans(root: Path, file: Path) -> None:
    """Refuse to begin an empty ledger beside indexes: they are what is left of one that was lost."""
    parts = (file, file.with_name(file.name + "-wal"))
    if file.is_file() and any(part.exists() and part.stat().st_size for part in parts):
        return
    left = [name for name in ("drawers.lance", "lexicon") if (root / name).exists()]
    if left:
        raise PalaceError(
            f"{file} is missing or empty, but {' and '.join(left)} beside it hold what was filed: put the "
            "ledger back from a copy, or name another palace with --palace; nothing was changed"
        )


def _check_settled(path: Path) -> None:
    """Refuse a read-only ledger whose last changes stand in its WAL, which only a writer can bring in."""
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise PalaceError(
            f"{path} is read-only and its last changes are still in {wal.name}: "
            "copy the palace to a place that can be written"
        )


def _has_no_room(error: PalaceError) -> bool:
    cause = error.__cause__.orig if isinstance(error.__cause__, DBAPIError) else error.__cause__
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _NO_ROOM


def _in_use(path: Path) -> bool:
    """Whether changes stand in the WAL of a ledger, or somebody shares memory about it."""
    for end, least in (("-wal", 1), ("-shm", _SHARED)):
        with suppress(OSError):
            if path.with_name(path.name + end).stat().st_size >= least:
                return True
    return False


def _engine(path: Path, read_only: bool) -> Engine:
    place = f"{path.resolve().as_uri()}?{'mode=ro&immutable=1' if read_only else 'mode=rwc'}"
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect(place),
        isolation_level="AUTOCOMMIT",
        poolclass=QueuePool,
        pool_size=2,
        max_overflow=16,
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
        if read_only:
            return
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
            _patiently(connection, f"PRAGMA {pragma}")

    return engine


def _connect(place: str) -> sqlite3.Connection:
    return sqlite3.connect(
        place, uri=True, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False
    )


def _done(connection: sqlite3.Connection, statement: str) -> bool:
    """Run a statement that needs the ledger for itself; False when others had it."""
    try:
        row = connection.execute(statement).fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False
        raise
    return row is None or not row[0]


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement that takes a lock of its own, such as the switch to WAL by two first openers."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.005, 0.05))


def _roll_back(cx: Connection) -> None:
    """End a transaction; a connection that an interrupt has invalidated is closed, which ends it, too."""
    if not cx.invalidated and cx.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
        run(cx, "ROLLBACK")


def _is_busy(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
