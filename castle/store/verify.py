"""Verification: the ledger against its own hashes, the projections against the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from castle.errors import CastleError, PalaceBusyError, PalaceError
from castle.records import Finding
from castle.store.appending import APPENDED, EMPTY, link, unlink
from castle.store.catchup import behind, cached_vectors, input_hash
from castle.store.filing import drawer_id
from castle.store.palace import Palace
from castle.store.projection import Projection, ProjectionRow, ProjectionUnavailable
from castle.store.reading import changed_rows
from castle.store.schema import drawers, membership, revisions, sources
from castle.store.session_verify import check_messages

_BATCH = 500
_SHOWN = 5
_VECTOR_TOLERANCE = 1e-5

Progress = Callable[[str, int, int], None]


def verify(palace: Palace, progress: Progress | None = None) -> list[Finding]:
    """Check everything the palace promises about its content and return one finding a check."""
    tell = progress or (lambda *_: None)
    return [
        _check("database", lambda: _integrity(palace)),
        _check("drawers", lambda: _drawers(palace, tell)),
        _check("sources", lambda: _sources(palace, tell)),
        _check("messages", lambda: check_messages(palace, tell)),
        _check("words", lambda: _lexicon(palace, tell)),
        _check("vectors", lambda: _vectors(palace, tell)),
    ]


class _Late(CastleError):
    """A projection has not come far enough to be checked."""


def _check(name: str, run: Callable[[], tuple[int, list[str]]]) -> Finding:
    try:
        checked, problems = run()
    except (_Late, PalaceBusyError) as error:
        return Finding(name, "not checked", str(error))
    except (ProjectionUnavailable, PalaceError) as error:
        return Finding(name, "failed", str(error))
    except CastleError as error:
        return Finding(name, "not checked", str(error))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        # Rows that no version of Castle wrote.
        return Finding(name, "failed", f"damaged rows ({type(error).__name__}: {error})")
    if problems:
        more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        return Finding(name, "failed", "; ".join(problems[:_SHOWN]) + more)
    return Finding(name, "ok", f"{checked} checked")


def _integrity(palace: Palace) -> tuple[int, list[str]]:
    with palace.ledger.read() as cx:
        lines = [line for (line,) in cx.exec_driver_sql("PRAGMA integrity_check(20)")]
        broken = [f"{table} row {row}" for table, row, *_ in cx.exec_driver_sql("PRAGMA foreign_key_check")]
    return 1, [line for line in lines if line != "ok"] + broken


def _drawers(palace: Palace, tell: Progress) -> tuple[int, list[str]]:
    """Every drawer's bytes have the hash filed with them, and its id follows from source and content."""
    problems: list[str] = []
    checked = 0
    with palace.ledger.read() as cx:
        total = cx.execute(select(func.count()).select_from(drawers)).scalar_one()
        query = (
            select(
                drawers.c.id, drawers.c.source, drawers.c.text, drawers.c.raw, drawers.c.sha256, sources.c.key
            )
            .select_from(drawers.join(sources, drawers.c.source == sources.c.id))
            .order_by(drawers.c.rid)
        )
        repeated = _repeated(cx)
        for row in cx.execute(query.execution_options(yield_per=_BATCH)):
            content = row.text.encode("utf-8") if row.raw is None else row.raw
            number = repeated.get((row.source, row.sha256), 0)
            if (row.source, row.sha256) in repeated:
                repeated[row.source, row.sha256] = number + 1
            if hashlib.sha256(content).digest() != row.sha256:
                problems.append(f"drawer {row.id}: its text is not what was filed")
            elif drawer_id(row.key, content, number) != row.id:
                problems.append(f"drawer {row.id}: its id does not follow from its content")
            checked += 1
            if checked % _BATCH == 0:
                tell("drawers", checked, total)
    return checked, problems


def _repeated(cx: Connection) -> dict[tuple[int, bytes], int]:
    """Return the contents that a source holds more than once, each with a count that starts at 0.

    The n-th of them, in the order of filing, has the number n in its id.
    """
    query = (
        select(drawers.c.source, drawers.c.sha256)
        .group_by(drawers.c.source, drawers.c.sha256)
        .having(func.count() > 1)
    )
    return {(source, sha256): 0 for source, sha256 in cx.execute(query)}


def _sources(palace: Palace, tell: Progress) -> tuple[int, list[str]]:
    """The members of every revision, in order, give the source back byte for byte."""
    problems: list[str] = []
    checked = 0
    with palace.ledger.read() as cx:
        total = cx.execute(select(func.count()).select_from(revisions)).scalar_one()
        query = (
            select(revisions, sources.c.path)
            .select_from(revisions.join(sources, revisions.c.source == sources.c.id))
            .order_by(revisions.c.source, revisions.c.number)
        )
        grown: _Grown | None = None
        for row in cx.execute(query.execution_options(yield_per=_BATCH)):
            if row.state == APPENDED:
                grown = _appended(cx, row.source, row.number, grown)
                digest, size = grown.digest, grown.size
            else:
                digest, size = _whole(cx, row.source, row.number)
            if digest != row.sha256 or size != row.size:
                problems.append(f"{row.path}, revision {row.number}: its drawers do not give it back")
            checked += 1
            tell("sources", checked, total)
    return checked, problems


@dataclass(frozen=True, slots=True)
class _Grown:
    """What the members of an appended revision came to; the next one goes on from it."""

    source: int
    number: int
    digest: bytes
    size: int


def _whole(cx: Connection, source: int, number: int) -> tuple[bytes, int]:
    digest, size = hashlib.sha256(), 0
    for content in _contents(cx, _held_by(source, number)):
        digest.update(content)
        size += len(content)
    return digest.digest(), size


def _appended(cx: Connection, source: int, number: int, before: _Grown | None) -> _Grown:
    """Go on with the chain of the revision before where that is one, else from the members it holds."""
    if before is None or (before.source, before.number) != (source, number - 1):
        digest, size = EMPTY, 0
        for content in _contents(cx, _held_by(source, number - 1)):
            digest, size = link(digest, hashlib.sha256(content).digest()), size + len(content)
    else:
        digest, size = before.digest, before.size
    of_source = membership.c.source == source
    for content in _contents(cx, and_(of_source, membership.c.to_revision == number)):
        digest, size = unlink(digest, hashlib.sha256(content).digest()), size - len(content)
    for content in _contents(cx, and_(of_source, membership.c.from_revision == number)):
        digest, size = link(digest, hashlib.sha256(content).digest()), size + len(content)
    return _Grown(source, number, digest, size)


def _held_by(source: int, number: int) -> ColumnElement[bool]:
    return and_(
        membership.c.source == source,
        membership.c.from_revision <= number,
        or_(membership.c.to_revision.is_(None), membership.c.to_revision > number),
    )


def _contents(cx: Connection, which: ColumnElement[bool]) -> Iterator[bytes]:
    query = (
        select(drawers.c.text, drawers.c.raw)
        .select_from(membership.join(drawers, membership.c.drawer == drawers.c.rid))
        .where(which)
        .order_by(membership.c.ordinal)
    )
    for text, raw in cx.execute(query.execution_options(yield_per=_BATCH)):
        yield text.encode("utf-8") if raw is None else raw


def every_row(palace: Palace) -> Iterator[Sequence[ProjectionRow]]:
    """Yield all drawers as projections see them, in batches, in order of change."""
    after = 0
    while True:
        with palace.ledger.read() as cx:
            rows = changed_rows(cx, after, _BATCH)
        if not rows:
            return
        yield rows
        after = rows[-1].seq


def _must_be_current(palace: Palace, projection: Projection) -> None:
    """Raise ProjectionUnavailable for one that cannot be read, _Late for one that has not come far enough."""
    late = behind(palace, projection)
    if late and projection.watermark() is None and projection.disk_bytes():
        raise ProjectionUnavailable("it cannot be read: `castle repair` builds it again")
    if late:
        raise _Late(f"drawers that are not in it yet: {late}; `castle repair` catches up")


def _lexicon(palace: Palace, tell: Progress) -> tuple[int, list[str]]:
    _must_be_current(palace, palace.lexicon)
    if palace.ledger.head() == 0:
        return 0, []
    problems = [f"{name} is damaged" for name in palace.lexicon.damaged_files()]
    checked = 0
    for rows in every_row(palace):
        wanted = {row.id for row in rows if row.state != "forgotten"}
        present = palace.lexicon.ids_present([row.id for row in rows])
        problems += [f"drawer {id_} is missing from the index of words" for id_ in sorted(wanted - present)]
        problems += [f"forgotten drawer {id_} is in the index of words" for id_ in sorted(present - wanted)]
        checked += len(wanted)
        tell("words", checked, 0)
    count = palace.lexicon.count()
    if count != checked and not problems:
        problems.append(f"the index of words holds {count} drawers, the ledger {checked}")
    return checked, problems


def _vectors(palace: Palace, tell: Progress) -> tuple[int, list[str]]:
    import numpy as np

    _must_be_current(palace, palace.vectors)
    if palace.ledger.head() == 0:
        return 0, []
    problems: list[str] = []
    checked = 0
    for rows in every_row(palace):
        wanted = {row.id: input_hash(row) for row in rows if row.state != "forgotten"}
        present = palace.vectors.vectors_of(list(wanted))
        cached = cached_vectors(palace, list(set(wanted.values())))
        for id_, key in wanted.items():
            if id_ not in present:
                problems.append(f"drawer {id_} has no vector")
            elif key not in cached:
                problems.append(f"drawer {id_}: the ledger keeps no vector to compare with")
            elif float(np.abs(present[id_] - cached[key]).max()) > _VECTOR_TOLERANCE:
                problems.append(f"drawer {id_}: its vector is not the one that was made")
        checked += len(wanted)
        tell("vectors", checked, 0)
    return checked, problems
