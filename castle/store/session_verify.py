"""Verification of conversations: every message comes back from its drawers byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, and_, func, select

from castle.store.palace import Palace
from castle.store.purged import STUB, is_stub, salt_of
from castle.store.schema import drawers, sources
from castle.store.session_tables import blobs, messages
from castle.store.sessions import COUNTED_ONLY, KIND, drawer_key, message_of

_BATCH = 500
_AT_ONCE = 50

_SPOKEN = and_(messages.c.size > 0, messages.c.kind.not_in(COUNTED_ONLY))

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class _Joined:
    """What the drawers of one version of a message come to."""

    source: int
    key: str
    sha256: bytes
    size: int
    purged: bool = False


def check_messages(palace: Palace, tell: Progress) -> tuple[int, list[str]]:
    """Compare every stored message with its drawers; return how many were checked and what is wrong.

    Of a message of which something was purged, the drawers that are left prove themselves.

    The drawers of a message were filed one after the other, so that one pass over all of them will do.
    """
    problems: list[str] = []
    checked = matched = 0
    with palace.ledger.read() as cx:
        total = cx.execute(select(func.count()).select_from(messages)).scalar_one()
        current = select(func.count()).select_from(messages).where(_SPOKEN, messages.c.current)
        expected = cx.execute(current).scalar_one()
        replaced = {
            (row.source, drawer_key(row.id, row.version)): row
            for row in cx.execute(select(messages).where(_SPOKEN, messages.c.current.is_(False)))
        }
        joined = _joined(cx)
        while batch := list(islice(joined, _BATCH)):
            for run, row in _recorded(cx, batch):
                trouble = _trouble(run, row)
                if trouble:
                    problems.append(f"message {run.key}: {trouble}")
                if row is not None and replaced.pop((run.source, run.key), None) is None:
                    matched += not trouble
            checked += len(batch)
            tell("messages", checked, total)
        for (_, key), row in replaced.items():
            if not _goes_on(cx, row):
                problems.append(f"message {key}: it has no drawers")
        if matched != expected:
            problems += _missing(cx)
        problems += _blobs(cx)
    return total, problems


def _joined(cx: Connection) -> Iterator[_Joined]:
    """Yield every run of drawers of one message, in the order they were filed."""
    query = (
        select(drawers.c.source, drawers.c.message_id, drawers.c.text, drawers.c.raw)
        .select_from(drawers.join(sources, sources.c.id == drawers.c.source))
        .where(sources.c.kind == KIND, drawers.c.seq.is_not(None))
        .order_by(drawers.c.rid)
    )
    rows = cx.execute(query.execution_options(yield_per=_AT_ONCE))
    for (source, key), run in groupby(rows, lambda row: (row.source, row.message_id)):
        digest, size, purged = hashlib.sha256(), 0, False
        for row in run:
            content = row.text.encode("utf-8") if row.raw is None else row.raw
            purged = purged or is_stub(row)
            digest.update(content)
            size += len(content)
        yield _Joined(source, key, digest.digest(), size, purged)


def _recorded(cx: Connection, batch: Sequence[_Joined]) -> Iterator[tuple[_Joined, Any]]:
    """Yield each run with the row of its message, None where there is none."""
    known: dict[tuple[int, str, int], Any] = {}
    for source in {run.source for run in batch}:
        ids = {message_of(run.key)[0] for run in batch if run.source == source}
        query = select(messages).where(messages.c.source == source, messages.c.id.in_(ids))
        known.update({(row.source, row.id, row.version): row for row in cx.execute(query)})
    for run in batch:
        yield run, known.get((run.source, *message_of(run.key)))


def _trouble(run: _Joined, row: Any) -> str:
    """Say what is wrong with the drawers of a message, "" when they give it back."""
    if row is None:
        return "it has drawers and is not recorded"
    if row.kind in COUNTED_ONLY:
        return f"it is {row.kind} and was stored all the same"
    if run.purged:
        return ""
    same = (run.sha256, run.size) == (row.sha256, row.size)
    return "" if same else "its drawers do not give it back"


def _missing(cx: Connection) -> Iterator[str]:
    """Yield the current messages that no drawer holds; needs the keys of one session's drawers at a time."""
    query = select(messages.c.source, messages.c.id, messages.c.version).where(_SPOKEN, messages.c.current)
    rows = cx.execute(query.order_by(messages.c.source, messages.c.id, messages.c.version))
    for source, of_source in groupby(rows, lambda row: row.source):
        held = (
            select(drawers.c.message_id)
            .distinct()
            .where(drawers.c.source == source, drawers.c.seq.is_not(None))
        )
        keys = set(cx.execute(held).scalars())
        for row in of_source:
            if drawer_key(row.id, row.version) not in keys:
                yield f"message {drawer_key(row.id, row.version)}: it has no drawers"


def _goes_on(cx: Connection, row: Any) -> bool:
    """Whether a later version of a replaced message begins with it.

    Of a message that grew within one reading, only what it came to has drawers.
    """
    if _is_purged(cx, row.source, row.id):
        return True
    later = select(messages.c.version).where(
        messages.c.source == row.source, messages.c.id == row.id, messages.c.version > row.version
    )
    for version in cx.execute(later.order_by(messages.c.version)).scalars().all():
        digest, left = hashlib.sha256(), row.size
        query = select(drawers.c.text, drawers.c.raw).where(
            drawers.c.source == row.source, drawers.c.message_id == drawer_key(row.id, version)
        )
        for text, raw in cx.execute(query.order_by(drawers.c.rid)):
            content = (text.encode("utf-8") if raw is None else raw)[:left]
            digest.update(content)
            left -= len(content)
        if left == 0 and digest.digest() == row.sha256:
            return True
    return False


def _is_purged(cx: Connection, source: int, id_: str) -> bool:
    """Whether something of a message was purged: what it said before cannot be compared then."""
    if salt_of(cx) is None:
        return False
    query = select(messages.c.version).where(messages.c.source == source, messages.c.id == id_)
    keys = [drawer_key(id_, version) for version in cx.execute(query).scalars()]
    stub = select(drawers.c.rid).where(drawers.c.source == source, drawers.c.message_id.in_(keys), STUB)
    return cx.execute(stub.limit(1)).first() is not None


def _blobs(cx: Connection) -> Iterator[str]:
    """Yield the files of messages that are not as they were filed."""
    query = select(blobs.c.sha256, blobs.c.size, blobs.c.data).execution_options(yield_per=1)
    for digest, size, data in cx.execute(query):
        if hashlib.sha256(data).digest() != digest or len(data) != size:
            yield f"file {digest.hex()[:24]} of a message is not what was filed"
