"""What a purge would destroy, and what it would leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, func, or_, select

from castle.errors import NotFoundError
from castle.store.ledger import batches
from castle.store.palace import Palace
from castle.store.places import chosen
from castle.store.purge_files import Finder
from castle.store.purged import STUB, copies_of
from castle.store.schema import drawers, sources

MOST_PROBES = 64
_TEXTS_EACH = 16
_PROBE = 48
_PROBES_EACH = 8
_WITHOUT_FILE = ("note", "diary")


@dataclass(frozen=True, slots=True)
class Outside:
    """A file beyond the palace that the text came from; ``holds`` it, or None where that cannot be told."""

    path: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """What a purge would destroy, and what it would leave.

    ``copies`` are other drawers with the same bytes, ``quoting`` those that hold a part of the text: neither
    goes unless it is named. ``outside`` are files beyond the palace that the text came from, ``backups``
    copies of the palace: nobody but their owner deletes them.
    """

    ids: tuple[str, ...]
    sources: tuple[str, ...]
    copies: tuple[str, ...] = ()
    quoting: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
    backups: tuple[str, ...] = ()


def plan(
    palace: Palace,
    *,
    id_: str | None = None,
    source: str | None = None,
    wing: str | None = None,
    copies: bool = False,
) -> PurgePlan:
    """Say what a purge would destroy; changes nothing.

    ``copies`` counts in other drawers with the same bytes. Raises NotFoundError when there is no such
    drawer, source or wing, or nothing is left of it.
    """
    with palace.ledger.read() as cx:
        planned, came_from = _planned(cx, palace.root, targets(cx, id_, source, wing, copies))
    return replace(planned, outside=tuple(_outside(came_from)))


def targets(cx: Connection, id_: str | None, source: str | None, wing: str | None, copies: bool) -> list[int]:
    """Return the drawers to be destroyed; those that no revision holds yet are among them."""
    if wing is not None:
        condition = drawers.c.wing == wing
        if cx.execute(select(drawers.c.rid).where(condition).limit(1)).first() is None:
            raise NotFoundError(f"no wing {wing}: `castle status` shows them")
    else:
        condition = chosen(cx, id_, source, None)[0]
    rids = [rid for (rid,) in cx.execute(select(drawers.c.rid).where(condition, ~STUB))]
    if not rids:
        raise NotFoundError("nothing is left there that could be purged: all of it was purged before")
    same = _same_bytes(cx, rids, staged_only=not copies)
    return sorted({*rids, *same})


def _same_bytes(cx: Connection, rids: Sequence[int], *, staged_only: bool) -> Iterator[int]:
    """Yield other drawers with the bytes of these; those that are staged nobody can see or name."""
    for part in batches(rids):
        hashes = select(drawers.c.sha256).where(drawers.c.rid.in_(part))
        query = select(drawers.c.rid).where(drawers.c.sha256.in_(hashes), ~STUB)
        if staged_only:
            query = query.where(drawers.c.seq.is_(None))
        yield from cx.execute(query).scalars()


def _planned(cx: Connection, root: Path, rids: Sequence[int]) -> tuple[PurgePlan, dict[str, list[str]]]:
    """Return the plan as far as the ledger tells, and the files with some texts that came from each."""
    chosen_ones = set(rids)
    ids: list[str] = []
    paths: dict[str, list[str]] = {}
    came_from: dict[str, list[str]] = {}
    for part in batches(rids):
        query = select(drawers.c.id, drawers.c.seq, drawers.c.text, sources.c.path, sources.c.kind).join(
            sources, sources.c.id == drawers.c.source
        )
        for row in cx.execute(query.where(drawers.c.rid.in_(part)).order_by(drawers.c.rid)):
            if row.seq is not None:
                ids.append(row.id)
            texts = paths.setdefault(row.path, [])
            if len(texts) < _TEXTS_EACH:
                texts.append(row.text)
            if row.kind not in _WITHOUT_FILE:
                came_from[row.path] = texts
    same = [rid for rid in _same_bytes(cx, rids, staged_only=False) if rid not in chosen_ones]
    texts = list(texts_of(cx, rids[:MOST_PROBES]))
    planned = PurgePlan(
        ids=tuple(ids),
        sources=tuple(paths),
        copies=tuple(_ids(cx, same)),
        quoting=tuple(quoting(cx, texts, {*chosen_ones, *same})),
        backups=tuple(str(path) for path in copies_of(cx, root)),
    )
    return planned, came_from


def texts_of(cx: Connection, rids: Sequence[int]) -> Iterator[str]:
    """Yield the exact texts of drawers."""
    for part in batches(rids):
        query = select(drawers.c.text).where(drawers.c.rid.in_(part)).order_by(drawers.c.rid)
        yield from cx.execute(query).scalars()


def quoting(cx: Connection, texts: Iterable[str], without: set[int]) -> Iterator[str]:
    """Yield the ids of drawers that hold a part of the texts, as far as some probes tell."""
    probes: list[str] = []
    for text in texts:
        bare = text.strip()
        last = max(1, len(bare) - _PROBE)
        step = max(_PROBE, last // _PROBES_EACH)
        probes += [bare[at : at + _PROBE] for at in range(0, last, step)][:_PROBES_EACH]
    probes = [probe for probe in dict.fromkeys(probes) if len(probe) >= _PROBE // 2][:MOST_PROBES]
    if not probes:
        return
    holds = or_(*(func.instr(drawers.c.text, probe) > 0 for probe in probes))
    query = select(drawers.c.rid, drawers.c.id).where(drawers.c.seq.is_not(None), holds)
    yield from (id_ for rid, id_ in cx.execute(query.order_by(drawers.c.rid)) if rid not in without)


def _ids(cx: Connection, rids: Sequence[int]) -> Iterator[str]:
    for part in batches(rids):
        query = select(drawers.c.id).where(drawers.c.rid.in_(part), drawers.c.seq.is_not(None))
        yield from cx.execute(query.order_by(drawers.c.rid)).scalars()


def _outside(came_from: Mapping[str, Sequence[str]]) -> Iterator[Outside]:
    """Yield the files that are still there; of one inside an archive, the archive."""
    for name, texts in came_from.items():
        with suppress(OSError, ValueError):
            path = Path(name)
            if path.is_file():
                yield Outside(name, Finder(texts).look_into(path).part)
            else:
                yield from (Outside(str(above), None) for above in path.parents if above.is_file())
