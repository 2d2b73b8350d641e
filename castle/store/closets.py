"""Closets: small pages of lines that point at drawers, and an AAAK line for each drawer.

Both are made from served text and stand only for as long as the drawers they repeat: a line that names a
drawer which was superseded, forgotten or moved since is not read any more, and ``compress`` makes it anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, exists, func, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from castle.errors import NotFoundError
from castle.records import HIDDEN_KINDS
from castle.store.closet_tables import aaak, closet_drawers, closet_lines, closets
from castle.store.ledger import Ledger, batches, to_json
from castle.store.projection import legal_text
from castle.store.schema import drawers, membership, sources
from castle.store.sealing import COLUMNS, shown
from castle.text import secrets
from castle.text.aaak import Dialect
from castle.text.closet import ClosetLine, Gist, pack

_BUILDER = "closets/1"
_BATCH = 500
_STEM = 40

Progress = Callable[[str, int, int], None]
"""Called with what is done, how many sources are, and how many there are."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """What a wing comes to; ``built`` counts the sources that were new or had changed.

    ``original_tokens`` and ``tokens`` are word pieces of the served texts and of their AAAK lines. ``left``
    counts sources that changed while they were read.
    """

    sources: int
    built: int
    unchanged: int
    left: int
    drawers: int
    lines: int
    closets: int
    original_tokens: int
    tokens: int
    dry_run: bool

    @property
    def ratio(self) -> float:
        """How many tokens of text stand behind one of AAAK."""
        return self.original_tokens / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, slots=True)
class Closet:
    """One page of lines about a source; ``fresh`` is false when the source has changed since it was made."""

    name: str
    source: str
    wing: str
    room: str
    text: str
    drawers: tuple[str, ...]
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Held:
    """A drawer as the lines are made from it."""

    rid: int
    id: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class _Totals:
    drawers: int
    lines: int
    closets: int
    original_tokens: int
    tokens: int


def compress(
    ledger: Ledger,
    wing: str | None = None,
    *,
    dialect: Dialect | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Compressed:
    """Make the AAAK lines and closets of what has changed in a wing, or in all; return what there is then.

    Raises NotFoundError when there is no such wing.
    """
    run = _Run(ledger, dialect or Dialect(), dry_run)
    wing = None if wing is None else legal_text(wing)
    states = _states(ledger, wing)
    totals: list[_Totals] = []
    built = left = 0
    for number, state in enumerate(states, start=1):
        if run.stands(state):
            totals.append(_stored(ledger, state.id))
        else:
            found = run.build(state)
            built, left = (built + 1, left) if found is not None else (built, left + 1)
            totals.append(found or _stored(ledger, state.id))
        if progress is not None:
            progress("compressing", number, len(states))
    if not dry_run:
        _sweep(ledger)
    return Compressed(
        len(states),
        built,
        len(states) - built - left,
        left,
        sum(t.drawers for t in totals),
        sum(t.lines for t in totals),
        sum(t.closets for t in totals),
        sum(t.original_tokens for t in totals),
        sum(t.tokens for t in totals),
        dry_run,
    )


def read_closets(ledger: Ledger, *, wing: str | None = None, source: str | None = None) -> list[Closet]:
    """Return the closets of a wing or of a source's key, of lines whose drawers all are as they were."""
    query = select(sources, closets.c.generation).join(closets, closets.c.source == sources.c.id)
    if wing is not None:
        query = query.where(sources.c.wing == legal_text(wing))
    if source is not None:
        query = query.where(sources.c.key == source)
    found: list[Closet] = []
    with ledger.read() as cx:
        for row in list(cx.execute(query.order_by(sources.c.wing, sources.c.path))):
            state = _state_of(cx, row.id)
            found += _pages(cx, row, state is not None and state.generation == row.generation)
    return found


def aaak_lines(ledger: Ledger, ids: Sequence[str]) -> dict[str, str]:
    """Return the AAAK lines of those drawers that have one which still stands."""
    found: dict[str, str] = {}
    with ledger.read() as cx:
        for batch in batches(ids):
            query = (
                select(drawers.c.id, aaak.c.line)
                .select_from(aaak.join(drawers, aaak.c.drawer == drawers.c.rid))
                .where(drawers.c.id.in_(batch), drawers.c.seq == aaak.c.seq, _current())
            )
            found.update((id_, line) for id_, line in cx.execute(query))
    return found


@dataclass(frozen=True, slots=True)
class _State:
    """A source and the state of it that lines are made for."""

    id: int
    path: str
    wing: str
    room: str
    generation: str
    count: int


class _Run:
    """One run of ``compress`` with one dialect."""

    def __init__(self, ledger: Ledger, dialect: Dialect, dry_run: bool) -> None:
        self._ledger = ledger
        self._dialect = dialect
        self._dry_run = dry_run
        settings = to_json([sorted(dialect.entities.items()), sorted(dialect.skip_names)])
        self._builder = f"{_BUILDER} {hashlib.sha256(settings.encode('utf-8')).hexdigest()[:8]}"

    def stands(self, state: _State) -> bool:
        """Whether what is stored was made by this builder for this state of the source."""
        query = select(closets.c.source).where(
            closets.c.source == state.id,
            closets.c.generation == state.generation,
            closets.c.builder == self._builder,
        )
        with self._ledger.read() as cx:
            return cx.execute(query).first() is not None

    def build(self, state: _State) -> _Totals | None:
        """Make a source's lines; None when it changed meanwhile."""
        gist = Gist()
        held: dict[int, tuple[str, int]] = {}
        original = short = count = 0
        with self._ledger.read() as cx:
            for batch in _in_batches(_drawers_of(cx, state.id)):
                for drawer in batch:
                    gist.add(drawer.rid, drawer.text)
                    held[drawer.rid] = (drawer.id, drawer.seq)
                rows = self._aaak_rows(cx, batch)
                original += sum(row["original_tokens"] for row in rows)
                short += sum(row["tokens"] for row in rows)
                count += len(batch)
                self._store_aaak(rows)
        place = f"{state.wing}/{state.room}/{PurePath(state.path).stem[:_STEM]}"
        lines = gist.lines(place)
        texts = [line.text([held[rid][0] for rid in line.drawers]) for line in lines]
        if not self._dry_run and not self._store_closets(state, lines, texts, held):
            return None
        return _Totals(count, len(lines), len(pack(texts)), original, short)

    def _aaak_rows(self, cx: Connection, batch: Sequence[_Held]) -> list[dict[str, Any]]:
        """Return the rows of these drawers, made anew where there is none that stands."""
        from castle.text.wordpiece import count_many

        query = select(aaak).where(aaak.c.drawer.in_([drawer.rid for drawer in batch]))
        known = {row.drawer: row for row in cx.execute(query)}
        rows: list[dict[str, Any]] = []
        fresh: list[_Held] = []
        for drawer in batch:
            row = known.get(drawer.rid)
            if row is not None and (row.seq, row.builder) == (drawer.seq, self._builder):
                rows.append(dict(row._mapping))
            else:
                fresh.append(drawer)
        lines = [self._dialect.encode(drawer.text) for drawer in fresh]
        counts = zip(
            fresh, lines, count_many([drawer.text for drawer in fresh]), count_many(lines), strict=True
        )
        for drawer, line, original, short in counts:
            rows.append(
                {
                    "drawer": drawer.rid,
                    "seq": drawer.seq,
                    "builder": self._builder,
                    "line": line,
                    "original_tokens": original,
                    "tokens": short,
                }
            )
        return rows

    def _store_aaak(self, rows: Sequence[dict[str, Any]]) -> None:
        if self._dry_run or not rows:
            return
        statement = upsert(aaak)
        names = ("seq", "builder", "line", "original_tokens", "tokens")
        values = {name: statement.excluded[name] for name in names}
        with self._ledger.write() as cx:
            cx.execute(statement.on_conflict_do_update(index_elements=["drawer"], set_=values), list(rows))

    def _store_closets(
        self,
        state: _State,
        lines: Sequence[ClosetLine],
        texts: Sequence[str],
        held: dict[int, tuple[str, int]],
    ) -> bool:
        with self._ledger.write() as cx:
            now = _state_of(cx, state.id)
            if now is None or now.generation != state.generation:
                return False
            cx.execute(delete(closets).where(closets.c.source == state.id))
            cx.execute(
                insert(closets).values(
                    source=state.id,
                    generation=state.generation,
                    builder=self._builder,
                    built_at=self._ledger.clock(),
                )
            )
            for ordinal, (line, text) in enumerate(zip(lines, texts, strict=True)):
                row = {"source": state.id, "ordinal": ordinal, "line": text}
                number = cx.execute(insert(closet_lines).values(row)).lastrowid
                pointers = [
                    {"line": number, "ordinal": place, "drawer": rid, "seq": held[rid][1]}
                    for place, rid in enumerate(line.drawers)
                ]
                cx.execute(insert(closet_drawers), pointers)
        return True


def _pages(cx: Connection, source: Row[*tuple[Any, ...]], fresh: bool) -> list[Closet]:
    changed = (
        select(closet_drawers.c.line)
        .select_from(closet_drawers.join(drawers, closet_drawers.c.drawer == drawers.c.rid))
        .where(
            closet_drawers.c.line == closet_lines.c.id,
            (drawers.c.seq != closet_drawers.c.seq)
            | (drawers.c.state != "current")
            | (drawers.c.detector_version < secrets.DETECTOR_VERSION),
        )
    )
    points = exists().where(closet_drawers.c.line == closet_lines.c.id)
    query = (
        select(closet_lines.c.line)
        .where(closet_lines.c.source == source.id, points, ~changed.exists())
        .order_by(closet_lines.c.ordinal)
    )
    lines = [line for (line,) in cx.execute(query)]
    stem = PurePath(source.path).stem[:_STEM]
    pages = []
    for number, text in enumerate(pack(lines), start=1):
        pointers = (id_ for line in text.split("\n") for id_ in line.rpartition("|→")[2].split(","))
        ids = tuple(dict.fromkeys(pointers))
        pages.append(Closet(f"{stem}_{number:02}", source.key, source.wing, source.room, text, ids, fresh))
    return pages


def _stored(ledger: Ledger, source: int) -> _Totals:
    """Return what is stored of a source and still stands."""
    sums = (
        select(
            func.count(),
            func.coalesce(func.sum(aaak.c.original_tokens), 0),
            func.coalesce(func.sum(aaak.c.tokens), 0),
        )
        .select_from(aaak.join(drawers, aaak.c.drawer == drawers.c.rid))
        .where(drawers.c.source == source, drawers.c.seq == aaak.c.seq, _current())
    )
    with ledger.read() as cx:
        count, original, short = cx.execute(sums).one()
        row = cx.execute(select(sources).where(sources.c.id == source)).one()
        pages = _pages(cx, row, True)
    return _Totals(count, sum(len(page.text.split("\n")) for page in pages), len(pages), original, short)


def _sweep(ledger: Ledger) -> None:
    """Delete what repeats drawers that are not as they were."""
    moved = select(drawers.c.rid).where(drawers.c.rid == aaak.c.drawer, drawers.c.seq != aaak.c.seq)
    ends = select(drawers.c.rid).where(
        drawers.c.rid == closet_drawers.c.drawer, drawers.c.seq != closet_drawers.c.seq
    )
    with ledger.write() as cx:
        cx.execute(delete(aaak).where(moved.exists()))
        broken = select(closet_drawers.c.line).where(ends.exists())
        cx.execute(delete(closet_lines).where(closet_lines.c.id.in_(broken)))


def _states(ledger: Ledger, wing: str | None) -> list[_State]:
    condition = sources.c.wing == wing if wing is not None else sources.c.revision > 0
    with ledger.read() as cx:
        if wing is not None and cx.execute(select(sources.c.id).where(condition).limit(1)).first() is None:
            raise NotFoundError(f"no wing {wing}: `castle status` shows them")
        return list(_read_states(cx, condition))


def _state_of(cx: Connection, source: int) -> _State | None:
    return next(_read_states(cx, sources.c.id == source), None)


def _read_states(cx: Connection, condition: ColumnElement[bool]) -> Iterator[_State]:
    """Yield the sources that hold drawers to make lines of."""
    query = (
        select(sources, func.max(drawers.c.seq).label("newest"), func.count().label("count"))
        .select_from(drawers.join(sources, drawers.c.source == sources.c.id))
        .where(condition, _current())
        .group_by(sources.c.id)
        .order_by(sources.c.path)
    )
    for row in cx.execute(query):
        count: int = row._mapping["count"]
        generation = f"{row.revision} {row.newest} {count}"
        yield _State(row.id, row.path, row.wing, row.room, generation, count)


def _current() -> ColumnElement[bool]:
    return and_(drawers.c.state == "current", drawers.c.seq.is_not(None), drawers.c.kind.not_in(HIDDEN_KINDS))


def _drawers_of(cx: Connection, source: int) -> Iterator[_Held]:
    query = (
        select(*COLUMNS, drawers.c.id, drawers.c.seq)
        .select_from(membership.join(drawers, membership.c.drawer == drawers.c.rid))
        .where(membership.c.source == source, membership.c.to_revision.is_(None), _current())
        .order_by(membership.c.ordinal)
    )
    for row in cx.execute(query.execution_options(yield_per=_BATCH)):
        yield _Held(row.rid, row.id, row.seq, shown(cx, row))


def _in_batches(items: Iterator[_Held]) -> Iterator[list[_Held]]:
    batch: list[_Held] = []
    for item in items:
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
