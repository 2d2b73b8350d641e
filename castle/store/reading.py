"""Reading the ledger: drawers, lists and counts, always scoped in SQL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select, text
from sqlalchemy.dialects import sqlite

from castle.errors import CastleError, NotFoundError, PalaceError, UsageError
from castle.records import HIDDEN_KINDS, Address, Drawer, Scope, SealedSpan
from castle.store.ledger import batches, marks, run
from castle.store.projection import ProjectionRow, legal_text
from castle.store.purged import stubs_by_place
from castle.store.schema import drawers, membership, revisions, sources
from castle.store.sealing import COLUMNS, sealed_of, shown
from castle.store.use_tables import ORDINARY, RECENT
from castle.text import secrets
from castle.text.served import mask_secrets, served_text

_MIN_PREFIX = 6

AnyRow = Row[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """How many drawers stand in one room, by state."""

    wing: str
    room: str
    current: int
    superseded: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source as the palace knows it; ``drawers`` counts those of its current revision."""

    key: str
    kind: str
    path: str
    wing: str
    room: str
    revision: int
    gone: bool
    forgotten: bool


def served(row: Drawer) -> str:
    """Return what may be shown of a drawer."""
    return served_text(row.text, row.sealed)


def scope_clause(scope: Scope, *, by_state: bool = True) -> ColumnElement[bool]:
    """Return the condition on ``drawers`` and ``sources`` that limits a query to ``scope``.

    ``sources`` is part of it where the scope names one. Without ``by_state`` the index of states stays out of
    it, by which a query would sort all drawers for a page of them.
    """
    state: ColumnElement[str] = drawers.c.state if by_state else drawers.c.state.concat("")
    terms: list[ColumnElement[bool]] = [drawers.c.seq.is_not(None)]
    if scope.as_of is not None:
        terms += [state != "forgotten", _member_at(scope.as_of)]
    elif scope.history:
        terms.append(state != "forgotten")
    else:
        terms.append(state == "current")
    if scope.kinds:
        terms.append(drawers.c.kind.in_(scope.kinds))
    else:
        terms.append(drawers.c.kind.not_in(HIDDEN_KINDS))
    for column, value in ((drawers.c.wing, scope.wing), (drawers.c.room, scope.room)):
        if value is not None:
            terms.append(column == value)
    if scope.role is not None:
        terms.append(drawers.c.role == scope.role)
    if scope.source is not None:
        terms.append(sources.c.key == scope.source)
    if scope.since is not None:
        terms.append(drawers.c.authored_at >= scope.since)
    if scope.until is not None:
        terms.append(drawers.c.authored_at < scope.until)
    return and_(*terms)


@lru_cache(maxsize=64)
def scope_sql(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Return ``scope_clause`` as SQL and its values, for statements that look drawers up by what they have.

    To write it takes longer than to run it, and most questions have the same scope.
    """
    query = select(drawers.c.rid).select_from(_FROM).where(scope_clause(scope, by_state=False))
    compiled = query.compile(dialect=sqlite.dialect(), compile_kwargs={"render_postcompile": True})
    values = tuple(compiled.params[name] for name in compiled.positiontup or ())
    return str(compiled).partition("WHERE ")[2], values


def _member_at(moment: int) -> ColumnElement[bool]:
    """The drawer belonged to the revision of its source that was current at ``moment``."""
    began = revisions.alias("began")
    ended = revisions.alias("ended")
    query = (
        select(membership.c.drawer)
        .join(
            began,
            and_(began.c.source == membership.c.source, began.c.number == membership.c.from_revision),
        )
        .outerjoin(
            ended,
            and_(ended.c.source == membership.c.source, ended.c.number == membership.c.to_revision),
        )
        .where(
            membership.c.drawer == drawers.c.rid,
            began.c.filed_at <= moment,
            or_(membership.c.to_revision.is_(None), ended.c.filed_at > moment),
        )
    )
    return query.exists()


_DAMAGED = (ValueError, KeyError, TypeError, AttributeError)


def _damaged(id_: str) -> PalaceError:
    return PalaceError(
        f"drawer {id_}: its row in the ledger is damaged: `castle verify` shows what else is; only "
        "a copy of the palace has it whole"
    )


def to_drawer(cx: Connection, row: Sequence[Any]) -> Drawer:
    """Build a Drawer from the columns of ``drawers`` and ``sources.key`` after them, by their places.

    Raises PalaceError for a damaged row.
    """
    try:
        return _drawer(cx, row)
    except _DAMAGED as error:
        raise _damaged(row[1]) from error


def _drawer(cx: Connection, row: Sequence[Any]) -> Drawer:
    rid, id_, seq, source, wing, room, hall, kind, role, speaker, message_id, text, raw, sha256 = row[:14]
    sealed, version, context, authored_at, filed_at, _, added_by, state, metadata, key = row[14:24]
    old = version < secrets.DETECTOR_VERSION
    spans: tuple[SealedSpan, ...] = ()
    if old or sealed is not None:
        spans = sealed_of(cx, _Kept(rid, source, message_id, text, sealed, version))
    return Drawer(
        id_,
        seq,
        key,
        wing,
        room,
        hall,
        kind,
        role,
        speaker,
        message_id,
        text,
        raw,
        sha256.hex(),
        spans,
        _masked(context) if old else context,
        authored_at,
        filed_at,
        added_by,
        state,
        json.loads(metadata) if metadata else {},
    )


_DRAWER_COLUMNS = (
    *drawers.c,
    sources.c.key.label("source_key"),
    sources.c.path.label("path"),
    sources.c.title.label("title"),
)
_FROM = drawers.join(sources, drawers.c.source == sources.c.id)


def full_id(cx: Connection, given: str) -> str:
    """Return the id that ``given`` names: itself or a unique beginning of at least six characters.

    Raises NotFoundError, or UsageError when several drawers begin with it.
    """
    text = given.strip().lower()
    if len(text) < _MIN_PREFIX or not all(c in "0123456789abcdef" for c in text):
        raise UsageError(
            f"{given!r} is no drawer id (hex, at least {_MIN_PREFIX} characters): `castle search` shows ids"
        )
    query = (
        select(drawers.c.id)
        .where(drawers.c.id >= text, drawers.c.id < text + "g", drawers.c.seq.is_not(None))
        .limit(2)
    )
    found = [id_ for (id_,) in cx.execute(query)]
    if not found:
        raise NotFoundError(f"no drawer {given}: `castle search` or `castle list` show the ids there are")
    if len(found) > 1:
        raise UsageError(f"several drawers begin with {given}: give more of the id")
    return cast(str, found[0])


def drawers_by_id(cx: Connection, ids: Sequence[str], scope: Scope | None = None) -> dict[str, Drawer]:
    """Return the drawers with these ids: forgotten ones as well, or those that lie in ``scope``.

    Unknown ids are left out.
    """
    return {row[1]: to_drawer(cx, row) for row in _looked_up(cx, _SELECTED, ids, scope)}


_SELECTED = ", ".join((*(f"drawers.{name}" for name in drawers.c.keys()), "sources.key"))  # noqa: SIM118


def _looked_up(
    cx: Connection, columns: str, ids: Sequence[str], scope: Scope | None
) -> Iterator[tuple[Any, ...]]:
    """Yield columns of the drawers with these ids, inside a scope where one is given."""
    if not ids:
        return
    inside, values = ("TRUE", ()) if scope is None else scope_sql(scope)
    statement = f"SELECT {columns} FROM {_JOINED} WHERE drawers.id IN ({_LISTED}) AND {inside}"  # noqa: S608
    yield from run(cx, statement, (json.dumps(list(ids)), *values))


_JOINED = "drawers JOIN sources ON sources.id = drawers.source"
_LISTED = "SELECT value FROM json_each(?)"
"""Any number of values in one, so that the statement stays the same."""


def drawers_of_messages(cx: Connection, source: int, keys: Sequence[str]) -> list[Drawer]:
    """Return the drawers of messages of one source, in the order they were filed, without forgotten ones."""
    wanted = and_(drawers.c.source == source, drawers.c.message_id.in_(keys), drawers.c.state != "forgotten")
    query = select(*_DRAWER_COLUMNS).select_from(_FROM).where(wanted, drawers.c.seq.is_not(None))
    return [to_drawer(cx, row) for row in cx.execute(query.order_by(drawers.c.rid))]


def addresses(cx: Connection, ids: Sequence[str]) -> dict[str, Address]:
    """Return where each drawer stands in the last revision of its source that held it."""
    statement = (
        'SELECT drawers.id, sources.path, m.start, m."end", m.first_line, m.last_line '  # noqa: S608
        f"FROM {_JOINED} JOIN membership m ON m.drawer = drawers.rid "
        f"WHERE drawers.id IN ({_LISTED}) ORDER BY m.from_revision"
    )
    return {id_: Address(*place) for id_, *place in run(cx, statement, (json.dumps(list(ids)),))}


def within(cx: Connection, ids: Sequence[str], scope: Scope) -> set[str]:
    """Return those of ``ids`` that lie inside ``scope``."""
    return {id_ for (id_,) in _looked_up(cx, "drawers.id", ids, scope)}


def copies_of(cx: Connection, hashes: Sequence[str], scope: Scope) -> dict[str, list[str]]:
    """Return, for each hash of a text, the ids of all drawers in ``scope`` that hold it."""
    found: dict[str, list[str]] = {digest: [] for digest in hashes}
    inside, values = scope_sql(scope)
    for batch in batches(list(found)):
        statement = (
            f"SELECT drawers.id, drawers.sha256 FROM {_JOINED} "  # noqa: S608
            f"WHERE drawers.sha256 IN ({marks(batch)}) AND {inside} ORDER BY drawers.rid"
        )
        for id_, digest in run(cx, statement, (*map(bytes.fromhex, batch), *values)):
            found[digest.hex()].append(id_)
    return found


def listed(cx: Connection, scope: Scope, limit: int, offset: int) -> tuple[int, list[Drawer]]:
    """Return how many drawers lie in ``scope`` and one page of them, in the order they were filed."""
    narrow = (scope.wing, scope.room, scope.source) != (None, None, None)
    page = select(drawers.c.rid).select_from(drawers if scope.source is None else _FROM)
    page = page.where(scope_clause(scope, by_state=narrow)).order_by(drawers.c.rid)
    chosen = page.limit(limit).offset(offset)
    query = select(*_DRAWER_COLUMNS).select_from(_FROM).where(drawers.c.rid.in_(chosen))
    query = query.order_by(drawers.c.rid)
    return _total(cx, scope), [to_drawer(cx, row) for row in cx.execute(query)]


def _total(cx: Connection, scope: Scope) -> int:
    """Count the drawers in a scope; the ordinary ones of a place by an index that holds no others."""
    known = cx.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = ?", (RECENT,)).first()
    if replace(scope, wing=None, room=None) != Scope() or known is None:
        query = select(func.count()).select_from(_FROM).where(scope_clause(scope))
        return cx.execute(query).scalar() or 0
    values = {name: value for name in ("wing", "room") if (value := getattr(scope, name)) is not None}
    place = "".join(f" AND {name} = :{name}" for name in values)
    statement = f"SELECT count(*) FROM drawers INDEXED BY {RECENT} WHERE {ORDINARY}{place}"  # noqa: S608
    return cx.execute(text(statement), values).scalar() or 0


def counts(cx: Connection) -> list[PlaceCount]:
    """Return the number of drawers by wing and room; those that were purged are not counted."""
    query = select(drawers.c.wing, drawers.c.room, drawers.c.state, func.count())
    query = query.group_by(drawers.c.state, drawers.c.wing, drawers.c.room)
    # Of all drawers one index has all there is to read; those that are only staged are few, and taken off.
    found = {(wing, room, state): number for wing, room, state, number in cx.execute(query)}
    for wing, room, state, number in cx.execute(query.where(drawers.c.seq.is_(None))):
        found[wing, room, state] -= number
    places: dict[tuple[str, str], dict[str, int]] = {}
    for (wing, room, state), number in found.items():
        if number:
            places.setdefault((wing, room), {})[state] = number
    for wing, room, number in stubs_by_place(cx):
        places[wing, room]["forgotten"] -= number
    return [
        PlaceCount(wing, room, by.get("current", 0), by.get("superseded", 0), by.get("forgotten", 0))
        for (wing, room), by in sorted(places.items())
    ]


def find_sources(cx: Connection, name: str) -> list[SourceInfo]:
    """Return the sources that ``name`` can mean: a key, a path from here or the top, or the end of a path."""
    here = legal_text(str(Path.cwd() / name) if "\0" not in name else name)
    here = os.path.normpath(here)
    exact = select(sources).where(or_(sources.c.key == name, sources.c.path.in_((name, here))))
    rows = list(cx.execute(exact))
    if not rows:
        tail = "/" + name.lstrip("/")
        ends = func.substr(sources.c.path, -len(tail)) == tail
        rows = list(cx.execute(select(sources).where(ends).order_by(sources.c.path)))
    return [source_info(row) for row in rows]


def one_source(cx: Connection, name: str) -> SourceInfo:
    """Return the one source that ``name`` means; raises NotFoundError or UsageError naming the choices."""
    if not name.strip():
        raise UsageError("the source is empty: `castle list --sources` shows those there are")
    found = find_sources(cx, name)
    if not found:
        raise NotFoundError(f"no source {name}: `castle list --sources` shows them")
    if len(found) > 1:
        by_path = len({info.path for info in found}) > 1
        choices = ", ".join(info.path if by_path else info.key for info in found[:5])
        raise UsageError(f"{name} may be {len(found)} sources ({choices}): name just one")
    return found[0]


def named_source(cx: Connection, name: str) -> SourceInfo:
    """Return the source that ``name`` means: what ``one_source`` takes, or the id of one of its drawers."""
    name = legal_text(name)
    try:
        return one_source(cx, name)
    except NotFoundError:
        try:
            id_ = full_id(cx, name)
        except CastleError:
            id_ = ""
        query = select(sources).join(drawers, drawers.c.source == sources.c.id).where(drawers.c.id == id_)
        row = cx.execute(query).first()
        if row is None:
            raise
        return source_info(row)


def list_sources(cx: Connection, wing: str | None, limit: int, offset: int) -> tuple[int, list[SourceInfo]]:
    """Return the number of sources and one page of them by wing and path."""
    condition = sources.c.revision > 0
    if wing is not None:
        condition = and_(condition, sources.c.wing == wing)
    total = cx.execute(select(func.count()).select_from(sources).where(condition)).scalar() or 0
    query = (
        select(sources).where(condition).order_by(sources.c.wing, sources.c.path).limit(limit).offset(offset)
    )
    return total, [source_info(row) for row in cx.execute(query)]


def source_info(row: AnyRow) -> SourceInfo:
    """Build a SourceInfo from a row of ``sources``."""
    return SourceInfo(
        row.key,
        row.kind,
        row.path,
        row.wing,
        row.room,
        row.revision,
        row.gone_at is not None,
        row.forgotten_at is not None,
    )


def members(cx: Connection, key: str, revision: int | None = None) -> Iterator[tuple[Drawer, Address]]:
    """Yield the drawers of a source's revision in order; None is the last one that held anything."""
    source = cx.execute(select(sources.c.id).where(sources.c.key == key)).scalar_one()
    if revision is None:
        held = and_(revisions.c.source == source, revisions.c.state != "gone")
        revision = cx.execute(select(func.max(revisions.c.number)).where(held)).scalar() or 0
    return _placed(cx, _members_at(source, revision))


def neighbours(cx: Connection, id_: str, count: int) -> list[tuple[Drawer, Address]]:
    """Return the drawer and up to ``count`` before and after it in the last revision that held it."""
    stands = cx.execute(
        select(membership)
        .select_from(membership.join(drawers, drawers.c.rid == membership.c.drawer))
        .where(drawers.c.id == id_)
        .order_by(membership.c.from_revision.desc())
        .limit(1)
    ).one()
    if stands.to_revision is None:
        newest = select(func.max(revisions.c.number)).where(revisions.c.source == stands.source)
        revision = cx.execute(newest).scalar_one()
    else:
        revision = stands.to_revision - 1
    around = membership.c.ordinal.between(stands.ordinal - count, stands.ordinal + count)
    visible = or_(drawers.c.state != "forgotten", drawers.c.id == id_)
    return list(_placed(cx, and_(_members_at(stands.source, revision), around, visible)))


def _members_at(source: int, revision: int) -> ColumnElement[bool]:
    return and_(
        membership.c.source == source,
        membership.c.from_revision <= revision,
        or_(membership.c.to_revision.is_(None), membership.c.to_revision > revision),
    )


def _placed(cx: Connection, condition: ColumnElement[bool]) -> Iterator[tuple[Drawer, Address]]:
    place = (membership.c.start, membership.c.end, membership.c.first_line, membership.c.last_line)
    query = (
        select(*_DRAWER_COLUMNS, *place)
        .select_from(_FROM.join(membership, membership.c.drawer == drawers.c.rid))
        .where(condition)
        .order_by(membership.c.ordinal)
    )
    for row in cx.execute(query):
        yield to_drawer(cx, row), Address(row.path, row.start, row.end, row.first_line, row.last_line)


def changed_rows(cx: Connection, after: int, limit: int) -> list[ProjectionRow]:
    """Return up to ``limit`` drawers that changed after ``seq`` number ``after``, in order of change."""
    return [projection_row(cx, row) for row in run(cx, _changed(), (after, limit, 0)).fetchall()]


@cache
def _changed() -> str:
    query = _projected(drawers.c.seq > 0).order_by(drawers.c.seq).limit(1)
    return str(query.compile(dialect=sqlite.dialect()))


def changed_in_scope(cx: Connection, after: int, scope: Scope, limit: int) -> tuple[int, list[ProjectionRow]]:
    """Return how many drawers in ``scope`` changed after ``seq`` number ``after``, and the newest of them."""
    condition = and_(drawers.c.seq > after, scope_clause(scope))
    total = cx.execute(select(func.count()).select_from(_FROM).where(condition)).scalar() or 0
    query = _projected(condition).order_by(drawers.c.seq.desc()).limit(limit)
    return total, [projection_row(cx, row) for row in cx.execute(query).all()]


def count_changed(cx: Connection, after: int, *, forgotten: bool = True) -> int:
    """Return how many drawers changed after ``seq`` number ``after``; ``forgotten`` counts those, too."""
    query = "SELECT count(*) FROM drawers WHERE seq > ?"
    query += "" if forgotten else " AND state != 'forgotten'"
    return int(run(cx, query, (after,)).fetchone()[0])


_PROJECTED = (
    drawers.c.id,
    drawers.c.seq,
    sources.c.key,
    sources.c.title,
    drawers.c.wing,
    drawers.c.room,
    drawers.c.kind,
    drawers.c.role,
    drawers.c.speaker,
    drawers.c.state,
    drawers.c.authored_at,
    drawers.c.filed_at,
    drawers.c.ended_at,
    drawers.c.sha256,
    drawers.c.context,
)


def _projected(condition: ColumnElement[bool]) -> Select[Any]:
    return select(*_PROJECTED, *COLUMNS).select_from(_FROM).where(condition)


class _Kept(NamedTuple):
    """The values of ``COLUMNS``."""

    rid: int
    source: int
    message_id: str
    text: str
    sealed: str | None
    detector_version: int


def projection_row(cx: Connection, row: Sequence[Any]) -> ProjectionRow:
    """Build what projections see of a drawer from the columns of ``_projected``, by their places.

    Raises PalaceError for a damaged row.
    """
    try:
        id_, seq, source, title, wing, room, kind, role, speaker, state, authored_at, filed_at = row[:12]
        ended_at, sha256, context, *_, text, sealed, version = row[12:]
        plain = sealed is None and version >= secrets.DETECTOR_VERSION
        return ProjectionRow(
            id_,
            seq,
            source,
            _masked(title),
            wing,
            room,
            kind,
            role,
            _masked(speaker) if speaker else "",
            state,
            authored_at,
            filed_at,
            ended_at,
            sha256.hex(),
            _masked(context) if context else "",
            text if plain else shown(cx, _Kept(*row[15:])),
        )
    except _DAMAGED as error:
        raise _damaged(row[0]) from error


@lru_cache(maxsize=4096)
def _masked(text: str) -> str:
    """Mask secrets in what stands around a text: names of files, headings and speakers may hold them, too."""
    return mask_secrets(text, b"")


def wing_rooms(places: Sequence[PlaceCount]) -> Mapping[str, list[PlaceCount]]:
    """Group counts by wing."""
    grouped: dict[str, list[PlaceCount]] = {}
    for place in places:
        grouped.setdefault(place.wing, []).append(place)
    return grouped
