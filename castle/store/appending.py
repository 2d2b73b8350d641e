"""Sources that only grow: where the last revision ends, and the hash that goes on from it.

The hash of an appended revision is a chain over what happened to the source. It begins with the SHA-256 of
nothing. Each member that is retired gives SHA-256(chain + SHA-256(its content) + "retired"), each that is
appended SHA-256(chain + SHA-256(its content)): first those retired, then those appended, in the order of
their ordinals. Members of a whole revision that is appended to count as appended. So appending costs what is
new, however long the source is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from castle.store.schema import drawers, membership, revisions

APPENDED = "appended"
"""The ``state`` of a revision whose hash is a chain."""

EMPTY = hashlib.sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a revision: the next ordinal and offset, the chain so far, and its size in bytes."""

    ordinal: int = 0
    end: int = 0
    digest: bytes = EMPTY
    size: int = 0


def link(digest: bytes, member: bytes) -> bytes:
    """Return the chain that goes on from ``digest`` with the SHA-256 of a member that is appended."""
    return hashlib.sha256(digest + member).digest()


def unlink(digest: bytes, member: bytes) -> bytes:
    """Return the chain that goes on from ``digest`` with the SHA-256 of a member that is retired."""
    return hashlib.sha256(digest + member + b"retired").digest()


def tail_of(cx: Connection, source: int, base: int) -> Tail:
    """Return where revision ``base``, the current one, ends; what was appended to is not read again."""
    row = cx.execute(
        select(revisions).where(revisions.c.source == source, revisions.c.number == base)
    ).first()
    if row is None:
        return Tail()
    if row.state != APPENDED:
        return _end_of_whole(cx, source, row.size)
    began = revisions.c.number == membership.c.from_revision
    newest = (
        select(membership.c.ordinal, membership.c.end, revisions.c.state)
        .select_from(membership.join(revisions, (revisions.c.source == membership.c.source) & began))
        .where(membership.c.source == source)
        .order_by(membership.c.from_revision.desc(), membership.c.ordinal.desc())
        .limit(1)
    )
    last = cx.execute(newest).first()
    if last is not None and last.state == APPENDED:
        return Tail(last.ordinal + 1, last.end, row.sha256, row.size)
    whole = _end_of_whole(cx, source, 0)
    return Tail(whole.ordinal, whole.end, row.sha256, row.size)


def repeats(cx: Connection, source: int, hashes: Collection[bytes]) -> dict[bytes, int]:
    """Return how many drawers with each of these contents the source has ever had."""
    # "+ 0" keeps the index of sources out of it, which would read every drawer the source has.
    of_source = drawers.c.source + 0 == source
    query = (
        select(drawers.c.sha256, func.count())
        .where(drawers.c.sha256.in_(hashes), of_source, drawers.c.seq.is_not(None))
        .group_by(drawers.c.sha256)
    )
    found = dict.fromkeys(hashes, 0)
    found.update((sha, count) for sha, count in cx.execute(query))
    return found


def _end_of_whole(cx: Connection, source: int, size: int) -> Tail:
    """Read all members of the current revision."""
    tail = Tail(size=size)
    query = (
        select(membership.c.ordinal, membership.c.end, drawers.c.sha256)
        .select_from(membership.join(drawers, membership.c.drawer == drawers.c.rid))
        .where(membership.c.source == source, membership.c.to_revision.is_(None))
        .order_by(membership.c.ordinal)
    )
    for member in cx.execute(query):
        tail = Tail(member.ordinal + 1, member.end, link(tail.digest, member.sha256), size)
    return tail
