"""Verification: the ledger against its own hashes, the projections against the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import Connection, func, select

from castle.errors import CastleError, PalaceBusyError, PalaceError
from castle.records import Finding
from castle.store.appending import APPENDED
from castle.store.catchup import behind, cached_vectors, input_hash
from castle.store.filing import drawer_id
from castle.store.palace import Palace
from castle.store.projection import Projection, ProjectionRow, ProjectionUnavailable
from castle.store.proofs import Grown, appended, whole
from castle.store.purged import gaps, is_stub, keyed, lines_of, salt_of, unfinished
from castle.store.reading import changed_rows
from castle.store.schema import drawers, revisions, sources
from castle.store.session_verify import check_messages

_BATCH = 500
_SHOWN = 5
_VECTOR_TOLERANCE = 1e-5

Progress = Callable[[str, int, int], None]


def verify(palace: Palace, progress: Progress | None = None) -> list[Finding]:
    """Check everything the palace promises about its content and return one finding a check.

    Where something was purged, one finding says where; that it is gone is no fault.
    """
    tell = progress or (lambda *_: None)
    return [
        _check("database", lambda: _integrity(palace)),
        _check("drawers", lambda: _drawers(palace, tell)),
        _check("sources", lambda: _sources(palace, tell)),
        _check("messages", lambda: check_messages(palace, tell)),
        _check("words", lambda: _lexicon(palace, tell)),
        _check("vectors", lambda: _vectors(palace, tell)),
        *_purged(palace),
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


def _purged(palace: Palace) -> Iterator[Finding]:
    """Yield where text was purged, if anywhere; a purge that is not done has failed so far."""
    try:
        with palace.ledger.read() as cx:
            waiting, found = unfinished(cx), gaps(cx)
    except CastleError:
        return  # the check of the database tells what is wrong
    if waiting:
        yield Finding("purged", "failed", f"purges that are not finished: {waiting}; `castle repair`")
        return
    by_path: dict[str, list[tuple[int, int]]] = {}
    for gap in found:
        by_path.setdefault(gap.path, []).append((gap.first_line, gap.last_line))
    if by_path:
        said = [f"{path}, {lines_of(lines)}" for path, lines in by_path.items()]
        more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
        yield Finding("purged", "ok", f"gone from {'; '.join(said[:_SHOWN])}{more}")


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
        repeated = _Repeated(cx)
        for row in cx.execute(query.execution_options(yield_per=_BATCH)):
            if is_stub(row):
                repeated.skip(row.source, row.sha256)
                continue
            content = row.text.encode("utf-8") if row.raw is None else row.raw
            number = repeated.next(row.source, row.sha256)
            if hashlib.sha256(content).digest() != row.sha256:
                problems.append(f"drawer {row.id}: its text is not what was filed")
            elif drawer_id(row.key, content, number) != row.id:
                problems.append(f"drawer {row.id}: its id does not follow from its content")
            checked += 1
            if checked % _BATCH == 0:
                tell("drawers", checked, total)
    return checked, problems


class _Repeated:
    """Counts how often a source has held a content: the n-th, in the order of filing, has n in its id.

    Only contents that come more than once are kept track of; purged ones are known by their keyed hashes.
    """

    def __init__(self, cx: Connection) -> None:
        query = (
            select(drawers.c.source, drawers.c.sha256)
            .group_by(drawers.c.source, drawers.c.sha256)
            .having(func.count() > 1)
        )
        self._salt = salt_of(cx)
        self._counts = {(source, sha256): 0 for source, sha256 in cx.execute(query)}

    def skip(self, source: int, sha256: bytes) -> None:
        """Count a stub, whose hash is keyed."""
        self._counts[source, sha256] = self._counts.get((source, sha256), 0) + 1

    def next(self, source: int, sha256: bytes) -> int:
        """Return how many came before, and count this one."""
        number = self._counts.get((source, sha256), 0)
        if (source, sha256) in self._counts:
            self._counts[source, sha256] = number + 1
        if self._salt is not None:
            number += self._counts.get((source, keyed(self._salt, sha256)), 0)
        return number


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
        grown: Grown | None = None
        for row in cx.execute(query.execution_options(yield_per=_BATCH)):
            if row.state == APPENDED:
                grown = appended(cx, row.source, row.number, grown)
                digest, size = grown.digest, grown.size
            else:
                digest, size = whole(cx, row.source, row.number)
            if digest != row.sha256 or size != row.size:
                problems.append(f"{row.path}, revision {row.number}: its drawers do not give it back")
            checked += 1
            tell("sources", checked, total)
    return checked, problems


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

    from castle.store.vectors import as_stored

    space = palace.space
    _must_be_current(palace, space.vectors)
    if palace.ledger.head() == 0:
        return 0, []
    problems = [f"{name} is damaged" for name in space.vectors.damaged_files()]
    checked = 0
    for rows in every_row(palace):
        wanted = {row.id: input_hash(row) for row in rows if row.state != "forgotten"}
        present = space.vectors.vectors_of(list(wanted))
        cached = cached_vectors(palace, list(set(wanted.values())), space.identity)
        for id_, key in wanted.items():
            if id_ not in present:
                problems.append(f"drawer {id_} has no vector")
            elif key not in cached:
                problems.append(f"drawer {id_}: the ledger keeps no vector to compare with")
            elif float(np.abs(present[id_] - as_stored(cached[key])).max()) > _VECTOR_TOLERANCE:
                problems.append(f"drawer {id_}: its vector is not the one that was made")
        checked += len(wanted)
        tell("vectors", checked, 0)
    return checked, problems
