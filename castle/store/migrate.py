"""Migrations: bringing the ledger of an earlier Castle to the schema of this one.

Each migration is one function for one version. Those that a ledger lacks run in order in one transaction,
after a copy of the ledger was put beside it; the copies of the last two migrations are kept. Their statements
are written out, because the tables in ``schema`` and its siblings go on changing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection

from castle.errors import PalaceError, PalaceVersionError
from castle.store.mind_migration import MIND_TABLES
from castle.store.schema import SCHEMA_VERSION

Migration = Callable[[Connection], None]

FOLDER = "backups"
KEPT = 2
"""How many copies of the ledger from before a migration are kept."""
PATIENCE_SECONDS = 600.0
"""For how long an opener waits for another process that is copying and migrating."""
READABLE_FROM = 1
"""The oldest schema that can be read as it is, where the palace cannot be written."""

_PAGES = 4096

_migrations: dict[int, Migration] = {}


def migration(version: int) -> Callable[[Migration], Migration]:
    """Register the function that brings a ledger from the schema before to ``version``."""

    def register(function: Migration) -> Migration:
        _migrations[version] = function
        return function

    return register


def schema_of(cx: Connection, path: Path) -> int:
    """Return the schema version of a ledger.

    Raises PalaceVersionError for one of a newer Castle, PalaceError for one that does not say its version.
    """
    stored = cx.exec_driver_sql("SELECT value FROM meta WHERE key = 'schema_version'").scalar()
    try:
        version = int(stored or "")
    except ValueError:
        version = 0
    if version < 1:
        raise PalaceError(f"{path} does not say which schema it has: it is damaged; nothing was changed")
    if version > SCHEMA_VERSION:
        raise PalaceVersionError(
            f"{path} has schema {version}, this Castle knows {SCHEMA_VERSION}: "
            "upgrade with `pip install -U cognitive-castle`"
        )
    return version


def refuse_unreadable(version: int, path: Path) -> None:
    """Raise PalaceVersionError for a ledger that has to be migrated first and cannot be written."""
    if version < READABLE_FROM:
        raise PalaceVersionError(
            f"{path} has schema {version} and is read-only: copy the palace to a place that can be written, "
            "where it is brought to today's schema"
        )


def migrate(cx: Connection, path: Path, now: int) -> int:
    """Bring the ledger at ``path`` to the present schema inside the write transaction of ``cx``.

    Returns the version it had. ``now`` (microseconds) names the copy that is made first. Raises PalaceError,
    and leaves everything as it is, when there is no room for that copy.
    """
    before = schema_of(cx, path)
    if before == SCHEMA_VERSION:
        return before
    _copy(path, path.parent / FOLDER / f"schema-{before}.{now:020d}.db")
    for version in range(before + 1, SCHEMA_VERSION + 1):
        _migrations[version](cx)
    statement = "UPDATE meta SET value = ? WHERE key = 'schema_version'"
    cx.exec_driver_sql(statement, (str(SCHEMA_VERSION),))
    return before


def copies(root: Path) -> list[Path]:
    """Return the copies of the ledger from before migrations, the oldest first."""
    return sorted((root / FOLDER).glob("schema-*.db"), key=lambda file: file.name.rpartition(".")[0][-20:])


def _copy(path: Path, target: Path) -> None:
    """Copy the ledger, of which the caller holds the write lock, and let go of copies from long ago."""
    draft = target.with_suffix(".draft")
    try:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        for left in target.parent.glob("schema-*.draft*"):
            left.unlink()
        draft.touch(mode=0o600)
        with (
            closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(draft)) as copy,
        ):
            source.backup(copy, pages=_PAGES)
        _see_on_disk(draft)
        draft.replace(target)
        _see_on_disk(target.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise PalaceError(
            f"{path} is of an earlier Castle, and no copy of it could be put into {target.parent} before it "
            f"is changed ({getattr(error, 'strerror', None) or error}): make room and run the command again"
        ) from error
    for old in copies(path.parent)[:-KEPT]:
        with suppress(OSError):
            old.unlink()


def _see_on_disk(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _run(cx: Connection, *statements: str) -> None:
    for statement in statements:
        cx.exec_driver_sql(statement)


@migration(2)
def _novelty_receipts_reveals_use_purges(cx: Connection) -> None:
    """Make the tables and indexes that came while the version was 1; some ledgers of then have them."""
    _run(
        cx,
        """CREATE TABLE IF NOT EXISTS novelty (
            drawer INTEGER NOT NULL,
            input BLOB NOT NULL,
            score FLOAT,
            nearest INTEGER,
            PRIMARY KEY (drawer),
            FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE,
            FOREIGN KEY(nearest) REFERENCES drawers (rid) ON DELETE SET NULL
        )""",
        """CREATE TABLE IF NOT EXISTS receipts (
            id INTEGER NOT NULL,
            at BIGINT NOT NULL,
            harness TEXT NOT NULL,
            hook TEXT NOT NULL,
            session TEXT NOT NULL,
            transcript TEXT NOT NULL,
            expected BIGINT NOT NULL,
            stored BIGINT NOT NULL,
            new BIGINT NOT NULL,
            digest TEXT NOT NULL,
            state TEXT NOT NULL,
            detail TEXT NOT NULL,
            settled_at BIGINT,
            seen BOOLEAN NOT NULL,
            PRIMARY KEY (id)
        )""",
        """CREATE TABLE IF NOT EXISTS reveals (
            id INTEGER NOT NULL,
            at BIGINT NOT NULL,
            actor TEXT NOT NULL,
            drawer INTEGER NOT NULL,
            kinds TEXT NOT NULL,
            PRIMARY KEY (id),
            FOREIGN KEY(drawer) REFERENCES drawers (rid)
        )""",
        """CREATE TABLE IF NOT EXISTS pins (
            drawer INTEGER NOT NULL,
            pinned_at BIGINT NOT NULL,
            pinned_by TEXT NOT NULL,
            PRIMARY KEY (drawer),
            FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE
        )""",
        """CREATE TABLE IF NOT EXISTS uses (
            drawer INTEGER NOT NULL,
            count INTEGER NOT NULL,
            used_at BIGINT NOT NULL,
            PRIMARY KEY (drawer),
            FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE
        )""",
        """CREATE TABLE IF NOT EXISTS purges (
            id INTEGER NOT NULL,
            at BIGINT NOT NULL,
            actor TEXT NOT NULL,
            reason TEXT NOT NULL,
            state TEXT NOT NULL,
            drawers INTEGER NOT NULL,
            sources INTEGER NOT NULL,
            finished_at BIGINT,
            PRIMARY KEY (id)
        )""",
        """CREATE TABLE IF NOT EXISTS purged (
            drawer INTEGER NOT NULL,
            purge INTEGER NOT NULL,
            size BIGINT NOT NULL,
            tag BLOB,
            length INTEGER,
            anchor INTEGER,
            PRIMARY KEY (drawer),
            FOREIGN KEY(drawer) REFERENCES drawers (rid),
            FOREIGN KEY(purge) REFERENCES purges (id)
        )""",
        """CREATE TABLE IF NOT EXISTS purge_inputs (
            purge INTEGER NOT NULL,
            input BLOB NOT NULL,
            PRIMARY KEY (purge, input),
            FOREIGN KEY(purge) REFERENCES purges (id)
        ) WITHOUT ROWID""",
        "CREATE INDEX IF NOT EXISTS ix_purged_purge ON purged (purge)",
        """CREATE TABLE IF NOT EXISTS purges (
            id INTEGER NOT NULL,
            at BIGINT NOT NULL,
            actor TEXT NOT NULL,
            reason TEXT NOT NULL,
            state TEXT NOT NULL,
            drawers INTEGER NOT NULL,
            sources INTEGER NOT NULL,
            finished_at BIGINT,
            PRIMARY KEY (id)
        )""",
        """CREATE TABLE IF NOT EXISTS purged (
            drawer INTEGER NOT NULL,
            purge INTEGER NOT NULL,
            size BIGINT NOT NULL,
            tag BLOB,
            length INTEGER,
            anchor INTEGER,
            PRIMARY KEY (drawer),
            FOREIGN KEY(drawer) REFERENCES drawers (rid),
            FOREIGN KEY(purge) REFERENCES purges (id)
        )""",
        """CREATE TABLE IF NOT EXISTS purge_inputs (
            purge INTEGER NOT NULL,
            input BLOB NOT NULL,
            PRIMARY KEY (purge, input),
            FOREIGN KEY(purge) REFERENCES purges (id)
        ) WITHOUT ROWID""",
        "CREATE INDEX IF NOT EXISTS ix_purged_purge ON purged (purge)",
        "CREATE INDEX IF NOT EXISTS ix_novelty_nearest ON novelty (nearest)",
        "CREATE INDEX IF NOT EXISTS ix_novelty_waiting ON novelty (drawer) WHERE score IS NULL",
        "CREATE INDEX IF NOT EXISTS ix_novelty_score ON novelty (score) WHERE score IS NOT NULL",
        "CREATE INDEX IF NOT EXISTS ix_receipts_session ON receipts (session)",
        "CREATE INDEX IF NOT EXISTS ix_receipts_transcript ON receipts (transcript)",
        "CREATE INDEX IF NOT EXISTS ix_reveals_drawer ON reveals (drawer)",
        "CREATE INDEX IF NOT EXISTS ix_uses_count ON uses (count)",
        "CREATE INDEX IF NOT EXISTS ix_drawers_detector ON drawers (detector_version, seq)",
        """CREATE INDEX IF NOT EXISTS ix_drawers_recent ON drawers (wing, room, authored_at)
            WHERE seq IS NOT NULL AND state = 'current'
            AND kind NOT IN ('tool', 'thinking', 'injected', 'subagent')""",
    )


@migration(3)
def _mind(cx: Connection) -> None:
    """Make the tables of the mind."""
    _run(cx, *MIND_TABLES)
