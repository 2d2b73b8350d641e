"""Which drawers a revision of a source holds, and where in it they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, LargeBinary, Row, bindparam, cast, func, select, update

from castle.store.ledger import batches, run_many
from castle.store.purged import STUB, size_of
from castle.store.schema import drawers, membership

_OPEN = (
    'INSERT INTO membership(source, from_revision, ordinal, drawer, start, "end", first_line, last_line) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Member:
    """A drawer as a member of a revision; ``size`` counts bytes, offsets count characters."""

    rid: int
    sha256: bytes
    size: int
    start: int
    end: int
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Leaving:
    """A drawer that a source holds and is to hold no longer; ``size`` counts bytes."""

    rid: int
    ordinal: int
    sha256: bytes
    size: int


def held_members(cx: Connection, source: int, rids: Sequence[int]) -> Iterator[Leaving]:
    """Yield those of the drawers that the current revision of the source holds."""
    content = func.coalesce(drawers.c.raw, cast(drawers.c.text, LargeBinary))
    for rid in rids:
        query = (
            select(membership.c.ordinal, drawers.c.sha256, func.length(content).label("size"), STUB)
            .select_from(membership.join(drawers, membership.c.drawer == drawers.c.rid))
            .where(
                membership.c.drawer == rid,
                membership.c.source == source,
                membership.c.to_revision.is_(None),
            )
        )
        for ordinal, sha256, size, stub in cx.execute(query):
            yield Leaving(rid, ordinal, sha256, size_of(cx, rid) if stub else size)


def same_place(row: Row[tuple[object, ...]] | None, ordinal: int, member: Member) -> bool:
    """Whether a row of ``membership`` says already where the member stands."""
    return row is not None and (row.ordinal, row.start, row.end, row.first_line, row.last_line) == (
        ordinal,
        member.start,
        member.end,
        member.first_line,
        member.last_line,
    )


def close_members(cx: Connection, source: int, number: int, rids: Sequence[int]) -> None:
    """End the membership of drawers with revision ``number``."""
    for part in batches(rids):
        cx.execute(
            update(membership)
            .where(
                membership.c.source == source,
                membership.c.drawer == bindparam("_rid"),
                membership.c.to_revision.is_(None),
            )
            .values(to_revision=number),
            [{"_rid": rid} for rid in part],
        )


def open_members(cx: Connection, source: int, number: int, begin: Sequence[tuple[int, Member]]) -> None:
    """Begin the membership of drawers with revision ``number``; each comes with its ordinal."""
    rows = (
        (
            source,
            number,
            ordinal,
            member.rid,
            member.start,
            member.end,
            member.first_line,
            member.last_line,
        )
        for ordinal, member in begin
    )
    run_many(cx, _OPEN, rows)
