"""The state of a palace in numbers, from counts and file sizes only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import func, select

from castle.errors import CastleError
from castle.store.catchup import behind
from castle.store.ledger import FILE_NAME
from castle.store.palace import TOKEN_CACHE, Palace
from castle.store.projection import Projection
from castle.store.purged import unfinished
from castle.store.reading import PlaceCount, counts
from castle.store.receipts import Receipt, failed_save
from castle.store.redetect import left
from castle.store.schema import sources
from castle.store.spaces import building
from castle.store.spool import in_the_way, waiting


@dataclass(frozen=True, slots=True)
class Projected:
    """How far one projection has come: ``behind`` counts drawers, ``bytes`` its size on disk."""

    name: str
    behind: int
    bytes: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """What a palace holds, and whether everything that makes it searchable is up to date.

    ``spool_events`` were noted by hooks and are not filed yet. ``old_detector`` counts drawers that were read
    with older rules for secrets: what is shown of them is masked each time, their indexes are not yet.
    ``unfinished_purges`` were begun and are to be finished by a repair. ``failed_save`` is the latest save of
    a session that failed and that no later one made up for; its ``id`` is 0 when there is no receipt of it.
    ``spool_trouble`` is what keeps hooks from noting anything. ``reindex`` says how far new vectors have come
    that are being made, or were begun; "" when there are none.
    """

    palace: str
    embedder: str
    sources: int
    drawers: int
    superseded: int
    forgotten: int
    places: tuple[PlaceCount, ...]
    projections: tuple[Projected, ...]
    ledger_bytes: int
    cache_bytes: int
    spool_events: int
    old_detector: int = 0
    unfinished_purges: int = 0
    failed_save: Receipt | None = None
    spool_trouble: str = ""
    reindex: str = ""


def status(palace: Palace) -> Status:
    """Return what the palace holds and how far its projections have come."""
    with palace.ledger.read() as cx:
        places = counts(cx)
        known = select(func.count()).select_from(sources).where(sources.c.revision > 0)
        source_count = cx.execute(known).scalar_one()
        old_detector = left(cx)
        purges = unfinished(cx)
        failure = failed_save(cx, palace.root)
    return Status(
        palace=str(palace.root),
        embedder=palace.identity.name,
        sources=source_count,
        drawers=sum(place.current for place in places),
        superseded=sum(place.superseded for place in places),
        forgotten=sum(place.forgotten for place in places),
        places=tuple(places),
        projections=(
            _projected("words", palace, lambda: palace.lexicon),
            _projected("vectors", palace, lambda: palace.vectors),
        ),
        ledger_bytes=_bytes(palace, FILE_NAME),
        cache_bytes=_bytes(palace, TOKEN_CACHE),
        spool_events=waiting(palace.root),
        old_detector=old_detector,
        unfinished_purges=purges,
        failed_save=failure,
        spool_trouble=in_the_way(palace.root),
        reindex=_reindex(palace),
    )


def _reindex(palace: Palace) -> str:
    with palace.ledger.read() as cx:
        if building(cx) is None:
            return ""
    from castle.store.reindex import unfinished as begun

    try:
        found = begun(palace)
        return found.told() if found is not None else ""
    except CastleError as error:
        return str(error)


def _bytes(palace: Palace, name: str) -> int:
    """Return the size of a database with what SQLite keeps beside it, which may go at any moment."""
    total = 0
    for file in palace.root.glob(f"{name}*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def _projected(name: str, palace: Palace, open_: Callable[[], Projection]) -> Projected:
    try:
        projection = open_()
        return Projected(name, behind(palace, projection), projection.disk_bytes())
    except CastleError as error:
        return Projected(name, 0, 0, str(error))
