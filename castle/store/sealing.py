"""What is sealed of a drawer: what was filed with it and, where older rules found that, what today's find.

A drawer that was read with older rules is looked at again whenever it is shown, until ``redetect`` has filed
what today's rules find in it; nothing that was sealed is ever opened again. As when it was filed, the rules
see the whole text that the drawer was cut from: one message, or one revision of a file.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, or_, select

from castle.records import SealedSpan
from castle.store.ledger import batches, get_value
from castle.store.schema import drawers, membership, sources
from castle.text import secrets
from castle.text.secrets import LONGEST_BLOCK, find_secrets, secret_tag
from castle.text.served import served_text

STRETCH = 131_072
"""Characters of a source that are read at once, apart from what stands around them."""
_AROUND = LONGEST_BLOCK + 4_096
_KEPT = 16

COLUMNS = (
    drawers.c.rid,
    drawers.c.source,
    drawers.c.message_id,
    drawers.c.text,
    drawers.c.sealed,
    drawers.c.detector_version,
)
"""What a query has to select of ``drawers`` for ``sealed_of`` and ``shown``."""

Spans = tuple[SealedSpan, ...]

_known: dict[tuple[object, ...], dict[int, Spans]] = {}
_lock = threading.Lock()


def shown(cx: Connection, row: Any) -> str:
    """Return what may be shown of a row with ``COLUMNS``."""
    return served_text(row.text, sealed_of(cx, row))


def shown_texts(cx: Connection, rids: Sequence[int]) -> dict[int, str]:
    """Return what may be shown of these drawers."""
    found: dict[int, str] = {}
    for part in batches(list(dict.fromkeys(rids))):
        for row in cx.execute(select(*COLUMNS).where(drawers.c.rid.in_(part))).all():
            found[row.rid] = shown(cx, row)
    return found


def sealed_of(cx: Connection, row: Any) -> Spans:
    """Return the sealed spans of a row with ``COLUMNS``."""
    filed = sealed_spans(row.sealed)
    if not is_old(row):
        return filed
    salt = bytes.fromhex(get_value(cx, "salt") or "")
    return united(row.text, filed, _found_now(cx, row, salt), salt)


def is_old(row: Any) -> bool:
    """Whether a drawer was read with rules that are older than those of this Castle."""
    return bool(row.detector_version < secrets.DETECTOR_VERSION)


def sealed_spans(stored: str | None) -> Spans:
    """Read the ``sealed`` column."""
    return tuple(SealedSpan(*span) for span in json.loads(stored)) if stored else ()


def united(text: str, filed: Sequence[SealedSpan], found: Sequence[SealedSpan], salt: bytes) -> Spans:
    """Return spans that cover what either holds, without overlaps; of two the wider one names the kind."""
    joined: list[SealedSpan] = []
    for span in sorted((*found, *filed), key=lambda span: (span.start, -span.end)):
        last = joined[-1] if joined else None
        if last is None or span.start >= last.end:
            joined.append(span)
        elif span.end > last.end:
            tag = secret_tag(text[last.start : span.end], salt)
            joined[-1] = SealedSpan(last.start, span.end, last.kind, tag)
    return tuple(joined)


def _found_now(cx: Connection, row: Any, salt: bytes) -> Spans:
    """Return what today's rules find in a drawer, reading what stands around it in its source."""
    place = _place(cx, row.rid)
    if place is None:
        return tuple(find_secrets(row.text, salt))
    source, revision, start = place
    number = start // STRETCH
    key = (salt, secrets.DETECTOR_VERSION, source, revision, number)
    with _lock:
        known = _known.get(key)
    if known is None:
        known = dict(_read(cx, source, revision, number, salt))
        with _lock:
            _known[key] = known
            while len(_known) > _KEPT:
                _known.pop(next(iter(_known)))
    return known.get(row.rid, ())


def _place(cx: Connection, rid: int) -> tuple[int, int, int] | None:
    """Return source, revision and offset of a drawer, in the last revision that held it."""
    query = (
        select(membership.c.source, membership.c.to_revision, membership.c.start, sources.c.revision)
        .join(sources, sources.c.id == membership.c.source)
        .where(membership.c.drawer == rid)
        .order_by(membership.c.from_revision.desc())
        .limit(1)
    )
    row = cx.execute(query).first()
    if row is None:
        return None
    return row.source, row.revision if row.to_revision is None else row.to_revision - 1, row.start


def _read(
    cx: Connection, source: int, revision: int, number: int, salt: bytes
) -> Iterator[tuple[int, Spans]]:
    """Yield what is found in the drawers that begin in one stretch of a source."""
    first, last = number * STRETCH, (number + 1) * STRETCH
    query = (
        select(drawers.c.rid, drawers.c.message_id, drawers.c.text, membership.c.start)
        .select_from(membership.join(drawers, membership.c.drawer == drawers.c.rid))
        .where(
            membership.c.source == source,
            membership.c.from_revision <= revision,
            or_(membership.c.to_revision.is_(None), membership.c.to_revision > revision),
            membership.c.end > first - _AROUND,
            membership.c.start < last + _AROUND,
        )
        .order_by(membership.c.ordinal)
    )
    for _, group in groupby(cx.execute(query), key=lambda row: row.message_id):
        rows = list(group)
        found = find_secrets("".join(row.text for row in rows), salt)
        at = 0
        for row in rows:
            end = at + len(row.text)
            if first <= row.start < last:
                yield row.rid, _inside(found, at, end)
            at = end


def _inside(found: Sequence[SealedSpan], start: int, end: int) -> Spans:
    """Return the parts of spans in ``[start, end)``, counted from ``start``."""
    return tuple(
        SealedSpan(max(span.start, start) - start, min(span.end, end) - start, span.kind, span.tag)
        for span in found
        if span.start < end and span.end > start
    )
