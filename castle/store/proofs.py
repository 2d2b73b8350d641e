"""What the drawers of a revision come to: the hash and the size that the revision was filed with.

A stub of a purged drawer counts with its keyed hash in the place of its bytes, and with the size they had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from castle.store.appending import EMPTY, link, unlink
from castle.store.purged import is_stub, size_of
from castle.store.schema import drawers, membership

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Grown:
    """What the members of an appended revision came to; the next one goes on from it."""

    source: int
    number: int
    digest: bytes
    size: int


@dataclass(frozen=True, slots=True)
class _Part:
    content: bytes
    digest: bytes
    size: int


def whole(cx: Connection, source: int, number: int) -> tuple[bytes, int]:
    """Return hash and size of a revision that was filed whole."""
    digest, size = hashlib.sha256(), 0
    for part in _parts(cx, _held_by(source, number)):
        digest.update(part.content)
        size += part.size
    return digest.digest(), size


def appended(cx: Connection, source: int, number: int, before: Grown | None) -> Grown:
    """Go on with the chain of the revision before where that is one, else from the members it holds."""
    if before is None or (before.source, before.number) != (source, number - 1):
        digest, size = EMPTY, 0
        for part in _parts(cx, _held_by(source, number - 1)):
            digest, size = link(digest, part.digest), size + part.size
    else:
        digest, size = before.digest, before.size
    of_source = membership.c.source == source
    for part in _parts(cx, and_(of_source, membership.c.to_revision == number)):
        digest, size = unlink(digest, part.digest), size - part.size
    for part in _parts(cx, and_(of_source, membership.c.from_revision == number)):
        digest, size = link(digest, part.digest), size + part.size
    return Grown(source, number, digest, size)


def _held_by(source: int, number: int) -> ColumnElement[bool]:
    return and_(
        membership.c.source == source,
        membership.c.from_revision <= number,
        or_(membership.c.to_revision.is_(None), membership.c.to_revision > number),
    )


def _parts(cx: Connection, which: ColumnElement[bool]) -> Iterator[_Part]:
    query = (
        select(drawers.c.rid, drawers.c.text, drawers.c.raw, drawers.c.sha256)
        .select_from(membership.join(drawers, membership.c.drawer == drawers.c.rid))
        .where(which)
        .order_by(membership.c.ordinal)
    )
    for row in cx.execute(query.execution_options(yield_per=_BATCH)):
        if is_stub(row):
            yield _Part(row.sha256, row.sha256, size_of(cx, row.rid))
        else:
            content = row.text.encode("utf-8") if row.raw is None else row.raw
            yield _Part(content, hashlib.sha256(content).digest(), len(content))
