"""What was purged: stubs that stand for drawers, and what is told of them.

A stub is a drawer with neither text nor bytes. Its ``sha256`` is keyed with the palace's salt, as every hash
is that was made of purged bytes.
"""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select

from castle.clock import to_iso
from castle.errors import CastleError, NotFoundError
from castle.store.drafts import drafts_of
from castle.store.ledger import Ledger, batches, get_value, run, set_value, to_json
from castle.store.purge_tables import purged, purges
from castle.store.schema import drawers, membership, sources

STUB: ColumnElement[bool] = and_(drawers.c.text == "", drawers.c.raw.is_(None))
"""The condition on ``drawers`` under which one is a stub."""

BEGUN, ERASED, DONE = "begun", "erased", "done"

COPIES_KEY = "copies"
"""Row of ``meta`` with the paths of backups and exports."""

_MOST_COPIES = 100
_HASTY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a source holds purged text no more: lines counted from 1, and the purge."""

    path: str
    first_line: int
    last_line: int
    at: int
    reason: str


def keyed(salt: bytes, digest: bytes) -> bytes:
    """Return what takes the place of a hash of purged bytes: HMAC-SHA256 with the palace's salt."""
    return hmac.digest(salt, digest, "sha256")


def is_stub(row: Any) -> bool:
    """Whether a row with ``text`` and ``raw`` of ``drawers`` is a stub."""
    return row.text == "" and row.raw is None


def is_there(cx: Connection) -> bool:
    """Whether the palace has the tables: one that is read-only may be older than they are."""
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'purged'"
    return run(cx, known).fetchone() is not None


def salt_of(cx: Connection) -> bytes | None:
    """Return the palace's salt where something was purged, None where nothing was."""
    try:
        some = run(cx, "SELECT 1 FROM purged LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        if is_there(cx):
            raise
        some = None
    if some is None:
        return None
    return bytes.fromhex(get_value(cx, "salt") or "")


def unfinished(cx: Connection) -> int:
    """Return how many purges were begun and are not done: `castle repair` finishes them."""
    if not is_there(cx):
        return 0
    query = select(func.count()).select_from(purges).where(purges.c.state != DONE)
    return cx.execute(query).scalar_one()


def size_of(cx: Connection, rid: int) -> int:
    """Return how many bytes a stub stands for."""
    return cx.execute(select(purged.c.size).where(purged.c.drawer == rid)).scalar() or 0


def check_not_purged(cx: Connection, id_: str) -> None:
    """Raise NotFoundError for the id of a drawer that was purged."""
    query = (
        select(purges.c.at, purges.c.actor, purges.c.reason)
        .select_from(purged.join(drawers, drawers.c.rid == purged.c.drawer).join(purges))
        .where(drawers.c.id == id_, STUB)
    )
    row = cx.execute(query).first() if is_there(cx) else None
    if row is not None:
        raise NotFoundError(
            f"drawer {id_} was purged by {row.actor} at {to_iso(row.at)} and is gone for good: {row.reason}"
        )


def gaps(cx: Connection, source: int | None = None) -> list[Gap]:
    """Return where current revisions hold purged text no more, in all sources or in one."""
    if salt_of(cx) is None:
        return []
    query = (
        select(
            sources.c.path,
            membership.c.first_line,
            membership.c.last_line,
            purges.c.at,
            purges.c.reason,
        )
        .select_from(
            purged.join(purges, purges.c.id == purged.c.purge)
            .join(drawers, drawers.c.rid == purged.c.drawer)
            .join(membership, membership.c.drawer == drawers.c.rid)
            .join(sources, sources.c.id == membership.c.source)
        )
        .where(STUB, membership.c.to_revision.is_(None))
        .order_by(sources.c.path, membership.c.ordinal)
    )
    if source is not None:
        query = query.where(membership.c.source == source)
    return [Gap(*row) for row in cx.execute(query)]


def with_gaps(cx: Connection) -> set[int]:
    """Return the sources whose current revision holds stubs."""
    if salt_of(cx) is None:
        return set()
    query = (
        select(membership.c.source)
        .select_from(membership.join(drawers, drawers.c.rid == membership.c.drawer).join(purged))
        .where(STUB, membership.c.to_revision.is_(None))
        .distinct()
    )
    return set(cx.execute(query).scalars())


def stubs_among(cx: Connection, rids: Sequence[int]) -> dict[int, bytes]:
    """Return those of the drawers that are stubs, each with its keyed hash."""
    found: dict[int, bytes] = {}
    for part in batches(list(dict.fromkeys(rids))):
        query = select(drawers.c.rid, drawers.c.sha256).where(drawers.c.rid.in_(part), STUB)
        found.update((rid, sha) for rid, sha in cx.execute(query))
    return found


def stubs_by_place(cx: Connection) -> list[tuple[str, str, int]]:
    """Return how many stubs were filed in each wing and room."""
    if salt_of(cx) is None:
        return []
    query = (
        select(drawers.c.wing, drawers.c.room, func.count())
        .select_from(purged.join(drawers, drawers.c.rid == purged.c.drawer))
        .where(STUB, drawers.c.seq.is_not(None))
        .group_by(drawers.c.wing, drawers.c.room)
    )
    return [(wing, room, number) for wing, room, number in cx.execute(query)]


def note_copy(ledger: Ledger, path: Path) -> None:
    """Remember where a copy of the palace was written, so that a purge can name it; the last hundred."""
    if ledger.read_only:
        return
    with suppress(CastleError), ledger.write(_HASTY_SECONDS) as cx:
        known = list_of_copies(get_value(cx, COPIES_KEY))
        set_value(cx, COPIES_KEY, list_with_copies(known, [str(path)]))


def list_of_copies(stored: str | None) -> list[str]:
    """Read what the ledger knows of copies; nothing where it is damaged."""
    try:
        found = json.loads(stored or "[]")
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def list_with_copies(known: Sequence[str], more: Sequence[str]) -> str:
    """Write down copies, the latest last, each once."""
    kept = [*(each for each in known if each not in more), *dict.fromkeys(more)]
    return to_json(kept[-_MOST_COPIES:])


def copies_of(cx: Connection, root: Path) -> list[Path]:
    """Return the copies of a palace that are known and still there, with those that a restore moved aside.

    What a process that was killed over a copy has left beside its place is one, too.
    """
    from castle.store.restoring import set_aside

    known = [Path(name) for name in list_of_copies(get_value(cx, COPIES_KEY))]
    left = [draft for path in known for draft in drafts_of(path)]
    return [path for path in (*known, *left, *set_aside(root.resolve())) if path.exists()]


def nothing_of(salt: bytes, digest: bytes) -> dict[str, object]:
    """Return what a stub holds in the place of content with this SHA-256."""
    return {
        "text": "",
        "raw": None,
        "sha256": keyed(salt, digest),
        "sealed": None,
        "context": "",
        "state": "forgotten",
        "metadata": None,
    }


def lines_of(purged_lines: Sequence[tuple[int, int]]) -> str:
    """Write lines of a source for people: lines 3-9, 12."""
    said = dict.fromkeys(f"{a}" if a == b else f"{a}-{b}" for a, b in purged_lines)
    return f"line{'' if len(said) == 1 and '-' not in next(iter(said)) else 's'} {', '.join(said)}"
