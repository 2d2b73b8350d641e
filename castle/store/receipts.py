"""Receipts: each save of a session says what it was to store and what it did store.

A save that failed stays open until the same session, or the same transcript, has been saved, or until
somebody dismisses it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, true, update

from castle.errors import NotFoundError, UsageError
from castle.store.receipt_tables import receipts
from castle.store.spool import told

State = Literal["ok", "failed", "waiting"]

KEPT = 1000
"""How many receipts are kept, apart from those of saves that failed and are still open."""

_OPEN = and_(receipts.c.state != "ok", receipts.c.settled_at.is_(None))
_FAILING = and_(receipts.c.state == "failed", receipts.c.settled_at.is_(None))


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one save did.

    ``entries`` stand in the transcript: what was said, calls of tools, thinking. ``stored`` of them are in
    the palace word for word, ``new`` came since the save before. ``withheld`` ones are private, or were told
    by Castle itself: only their size is kept; of a save that is not ok, ``detail`` says how many. ``digest``
    is a hash over the hashes of both. ``state`` waiting: the transcript was still growing. ``detail`` is the
    reason, or what else there is to know. ``settled_at`` is when a later save made up for this one, or when
    somebody dismissed it.
    """

    id: int
    at: int
    harness: str
    hook: str
    session: str
    transcript: str
    entries: int
    stored: int
    digest: str
    state: State
    detail: str
    new: int = 0
    settled_at: int | None = None
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class ReceiptPage:
    """One page of receipts, the latest first; ``failing`` saves are open, of all there are."""

    total: int
    offset: int
    failing: int
    receipts: tuple[Receipt, ...]


@dataclass(frozen=True, slots=True)
class FiledAway:
    """What has been saved since it was last asked: ``count`` entries, the last at ``timestamp``."""

    status: Literal["quiet", "ok", "error"]
    message: str
    count: int = 0
    timestamp: int | None = None


def record(cx: Connection, receipt: Receipt) -> None:
    """Keep a receipt; its ``id`` is not used.

    One that is not ok takes the place of an open one of the same transcript; one that is ok settles the open
    ones of its transcript and of its session, and where it found what the last one of its transcript had
    found, that one gets its time. One with ``settled_at`` is let go, and not open any more.
    """
    same = receipts.c.transcript == receipt.transcript
    if receipt.state == "ok":
        receipt = replace(receipt, new=max(receipt.new, _untold(cx, receipt)))
    values = _values(receipt)
    if receipt.state == "ok":
        if not receipt.new and (id_ := _the_same(cx, receipt)) is not None:
            cx.execute(update(receipts).where(receipts.c.id == id_).values(at=receipt.at))
            return
        its = or_(same, and_(receipts.c.session == receipt.session, receipts.c.session != ""))
        cx.execute(update(receipts).where(_OPEN, its).values(settled_at=receipt.at))
    else:
        before = cx.execute(select(receipts.c.id).where(_OPEN, same)).scalars().first()
        if before is not None:
            cx.execute(update(receipts).where(receipts.c.id == before).values(**values))
            return
    cx.execute(insert(receipts).values(**values))
    last = cx.execute(select(receipts.c.id).order_by(receipts.c.id.desc()).limit(1).offset(KEPT)).scalar()
    if last is not None:
        cx.execute(delete(receipts).where(receipts.c.id <= last, ~_OPEN))


def _untold(cx: Connection, receipt: Receipt) -> int:
    """Return how many entries came since the transcript's last save; one that was killed has told of none."""
    its = and_(receipts.c.transcript == receipt.transcript, receipts.c.state == "ok")
    told_of = cx.execute(select(func.max(receipts.c.expected)).where(its)).scalar()
    return receipt.entries - told_of if told_of is not None else 0


def _the_same(cx: Connection, receipt: Receipt) -> int | None:
    """Return the id of the transcript's last receipt when it is ok and says the same."""
    query = select(receipts).where(receipts.c.transcript == receipt.transcript)
    last = cx.execute(query.order_by(receipts.c.at.desc(), receipts.c.id.desc()).limit(1)).first()
    if last is None or last.state != "ok" or last.session != (receipt.session or last.session):
        return None
    same = (last.digest, last.expected, last.detail) == (receipt.digest, receipt.entries, receipt.detail)
    return int(last.id) if same else None


def dismiss(cx: Connection, name: str, now: int) -> tuple[Receipt, ...]:
    """Settle saves that are not ok, at ``now`` in microseconds, and return them as they were.

    ``name`` is the id of a receipt, or a session's id or its beginning. Raises NotFoundError when no open one
    has it, UsageError when several sessions begin with it.
    """
    open_ = [_receipt(row) for row in cx.execute(select(receipts).where(_OPEN).order_by(receipts.c.id))]
    found = [one for one in open_ if str(one.id) == name or (name and one.session == name)]
    if not found and name:
        found = [one for one in open_ if one.session.startswith(name)]
        if len({one.session for one in found}) > 1:
            names = ", ".join(sorted({one.session for one in found})[:3])
            raise UsageError(f"several sessions begin with {name}: {names}; name one, or a receipt by its id")
    if not found:
        raise NotFoundError(f"no save of {name!r} is open; `castle receipts --failed` lists them")
    for one in found:
        detail = f"{one.detail}; dismissed"
        cx.execute(update(receipts).where(receipts.c.id == one.id).values(settled_at=now, detail=detail))
    return tuple(found)


def saved_since(cx: Connection, moment: int) -> bool:
    """Whether any save has been ok since a moment in microseconds."""
    query = select(receipts.c.id).where(receipts.c.state == "ok", receipts.c.at > moment).limit(1)
    return cx.execute(query).first() is not None


def list_receipts(cx: Connection, limit: int, offset: int, session: str | None, failed: bool) -> ReceiptPage:
    """Return a page of receipts, the latest first.

    ``session`` is a session's id or its beginning; ``failed`` leaves only the saves that are open.
    """
    if not _table_is_there(cx):
        return ReceiptPage(0, offset, 0, ())
    its = func.substr(receipts.c.session, 1, len(session)) == session if session is not None else true()
    condition = and_(its, _FAILING if failed else true())
    total = cx.execute(select(func.count()).select_from(receipts).where(condition)).scalar_one()
    failing = cx.execute(select(func.count()).select_from(receipts).where(its, _FAILING)).scalar_one()
    query = select(receipts).where(condition).order_by(receipts.c.at.desc(), receipts.c.id.desc())
    rows = cx.execute(query.limit(limit).offset(offset))
    return ReceiptPage(total, offset, failing, tuple(_receipt(row) for row in rows))


def last_failed(cx: Connection, apart_from: Collection[str] = ()) -> Receipt | None:
    """Return the latest save that failed and is still open, but for those of some transcripts."""
    if not _table_is_there(cx):
        return None
    other = receipts.c.transcript.not_in(apart_from) if apart_from else true()
    query = (
        select(receipts).where(_FAILING, other).order_by(receipts.c.at.desc(), receipts.c.id.desc()).limit(1)
    )
    row = cx.execute(query).first()
    return _receipt(row) if row is not None else None


def failed_save(cx: Connection, root: Path) -> Receipt | None:
    """Return the latest save that failed and is still open; its ``id`` is 0 when only ``failed.json`` tells.

    That is so when the drainer itself has failed, when the ledger could not be written, and when a hook
    could not note an event.
    """
    recorded, word = last_failed(cx), told(root)
    if word is None or (recorded is not None and recorded.at >= word.at):
        return recorded
    return Receipt(0, word.at, "", "", word.session, word.transcript, 0, 0, "", "failed", word.detail)


def unseen(cx: Connection) -> tuple[int, int | None]:
    """Return how many entries were saved in receipts that nobody has asked for, and when the last was."""
    if not _table_is_there(cx):
        return 0, None
    fresh = and_(receipts.c.seen.is_(False), receipts.c.state == "ok")
    query = select(func.coalesce(func.sum(receipts.c.new), 0), func.max(receipts.c.at)).where(fresh)
    count, last = cx.execute(query).one()
    return int(count), last


def mark_seen(cx: Connection) -> None:
    """Note that somebody has asked for all receipts there are."""
    cx.execute(update(receipts).where(receipts.c.seen.is_(False)).values(seen=True))


def _table_is_there(cx: Connection) -> bool:
    """Whether the ledger has the table; one of an earlier version that is read-only never gets it."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'receipts'"
    return cx.exec_driver_sql(query).first() is not None


def _values(receipt: Receipt) -> dict[str, Any]:
    return {
        "at": receipt.at,
        "harness": receipt.harness,
        "hook": receipt.hook,
        "session": receipt.session,
        "transcript": receipt.transcript,
        "expected": receipt.entries,
        "stored": receipt.stored,
        "new": receipt.new,
        "digest": receipt.digest,
        "state": receipt.state,
        "detail": receipt.detail,
        "settled_at": receipt.settled_at,
        "seen": False,
    }


def _receipt(row: Any) -> Receipt:
    return Receipt(
        id=row.id,
        at=row.at,
        harness=row.harness,
        hook=row.hook,
        session=row.session,
        transcript=row.transcript,
        entries=row.expected,
        stored=row.stored,
        digest=row.digest,
        state=row.state,
        detail=row.detail,
        new=row.new,
        settled_at=row.settled_at,
        withheld=row.expected - row.stored if row.state == "ok" else 0,
    )
