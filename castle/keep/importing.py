"""Import: the lossless export of one palace, merged into another.

Everything is read and proven before anything is written. Sources are merged one by one, a few thousand rows
to a transaction: an import that was interrupted is run again, and what it meets a second time is known.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, and_, insert, select, update
from sqlalchemy.exc import StatementError

from castle.errors import PalaceError, PalaceVersionError, UsageError
from castle.keep.layout import OF_SOURCE, Head, Record, columns_of, decoded, records
from castle.keep.merging import Group, Merged, Rules, merge
from castle.store.entity_tables import registry
from castle.store.graph_tables import entities
from castle.store.ledger import batches, set_value
from castle.store.mentions import LANGUAGES_KEY, look_back, names_changed
from castle.store.palace import Palace
from castle.store.places import present_name
from castle.store.purge_guard import guard_of
from castle.store.schema import SCHEMA_VERSION, drawers, sources, tables

Progress = Callable[[str, int, int], None]

_FOREIGN = (
    UsageError,
    StatementError,
    sqlite3.Error,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
)
"""What comes of values that do not belong where they stand."""

ROWS_AT_ONCE = 2000
SHOWN = 20

_KEYED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "projects": (("id",), ("name",)),
    "project_aliases": (("kind", "value"), ("project",)),
    "wing_names": (("old",), ("new",)),
    "entities": (("id",), ("name", "type")),
    "entity_aliases": (("alias",), ("entity",)),
    "registry": (("entity",), ("kind",)),
    "blobs": (("sha256",), ()),
    "mentions": (("entity", "drawer"), ()),
    "pins": (("drawer",), ()),
    "uses": (("drawer",), ()),
    "readings": (("address",), ()),
    "evidence": (("triple", "drawer", "source", "adapter", "actor", "recorded_at"), ()),
    "receipts": (("at", "harness", "hook", "session", "transcript"), ()),
    "reveals": (("at", "actor", "drawer"), ()),
}
"""Tables whose rows stand by themselves: by which columns a row is known, and which must be equal then."""
_VERSIONED = ("triples", "tunnels")
"""Tables that hold the versions of things, which are merged as the history that they are."""
_ENDS = ("ended_at", "ended_by")
_OF_ENTITY = {
    "mentions": registry.c.entity,
    "registry": entities.c.id,
    "entity_aliases": entities.c.id,
}
_NEEDED = ("mentions", "pins", "uses", "reveals")
"""Tables whose rows say nothing without their drawer."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    ``sources`` are those that were not here before, ``grown`` those that went on, ``known`` those that the
    palace had already. ``rows`` counts new rows of other tables. ``masked`` drawers are copies without their
    sealed text, ``masked_ids`` the first of them. ``conflicts`` says what was left as the palace has it.
    """

    path: str
    exact: bool
    sources: int
    grown: int
    known: int
    drawers: int
    rows: Mapping[str, int]
    masked: int
    masked_ids: tuple[str, ...]
    conflict_count: int
    conflicts: tuple[str, ...]


def check_version(path: Path, head: Head) -> None:
    """Raise PalaceVersionError for an export of a newer schema."""
    if head.schema > SCHEMA_VERSION:
        raise PalaceVersionError(
            f"{path} has schema {head.schema}, this Castle knows {SCHEMA_VERSION}: "
            "upgrade with `pip install -U cognitive-castle`"
        )


def import_jsonl(palace: Palace, path: Path, head: Head, progress: Progress | None = None) -> Imported:
    """Merge the export at ``path``, of which ``head`` was proven, into the palace.

    Raises PalaceBusyError or PalaceError; what was merged until then stays, and is known next time.
    """
    try:
        return _Import(palace, path, head, progress or (lambda *_: None)).run()
    except _FOREIGN as error:
        # Rows that no version of Castle wrote, in a file whose hash somebody made anew.
        why = " ".join(str(error).partition("\n")[0].split())
        raise PalaceError(f"{path} holds what cannot be filed: {type(error).__name__}: {why}") from error


@dataclass(slots=True)
class _Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    drawers: int = 0
    masked: list[str] = field(default_factory=list)
    masked_count: int = 0
    conflicts: list[str] = field(default_factory=list)
    conflict_count: int = 0

    def conflict(self, told: str) -> None:
        """Count a conflict, and keep the first ones."""
        self.conflict_count += 1
        if len(self.conflicts) < SHOWN:
            self.conflicts.append(told)


class _Import:
    """One run."""

    def __init__(self, palace: Palace, path: Path, head: Head, tell: Progress) -> None:
        self._palace = palace
        self._ledger = palace.ledger
        self._path = path
        self._head = head
        self._tell = tell
        self._tally = _Tally()
        self._renamed: dict[str, str] = {}
        self._named: set[str] = set()
        self._reader = _Reader(path)

    def run(self) -> Imported:
        """Merge everything."""
        with self._ledger.write() as cx:
            rules = self._begin(cx)
        total = sum(self._head.counts.values())
        while not self._reader.at_end:
            with self._ledger.write() as cx:
                start = self._reader.read
                while not self._reader.at_end and self._reader.read - start < ROWS_AT_ONCE:
                    self._step(cx, rules)
                self._note_names(cx, rules)
            self._tell("rows", self._reader.read, total)
        self._read_on()
        tally = self._tally
        return Imported(
            path=str(self._path),
            exact=self._head.exact,
            sources=tally.outcomes["new"],
            grown=tally.outcomes["grown"],
            known=tally.outcomes["known"],
            drawers=tally.drawers,
            rows=dict(tally.rows),
            masked=tally.masked_count,
            masked_ids=tuple(tally.masked),
            conflict_count=tally.conflict_count,
            conflicts=tuple(tally.conflicts),
        )

    def _begin(self, cx: Connection) -> Rules:
        """Take over what an empty palace lacks; return what holds for the sources."""
        fresh = cx.execute(select(sources.c.id).limit(1)).first() is None
        salt = str(self._head.about.get("salt") or "")
        if fresh:
            if salt:
                set_value(cx, "salt", salt)
                self._palace.__dict__.pop("salt", None)
            if languages := self._head.about.get("languages"):
                set_value(cx, LANGUAGES_KEY, str(languages))
        own = cx.exec_driver_sql("SELECT value FROM meta WHERE key = 'salt'").scalar()
        other = bytes.fromhex(str(own)) if salt and salt != own else None
        return Rules(other, guard_of(cx), link=not fresh)

    def _step(self, cx: Connection, rules: Rules) -> None:
        """Merge what comes next: a source with all of its rows, some rows, or the versions of one thing."""
        name = self._reader.next_table
        if name == "sources":
            self._source(cx, rules)
        elif name in _VERSIONED:
            self._versions(cx, name)
        elif name in _KEYED:
            self._rows(cx, name)
        else:
            raise PalaceError(f"{self._path} has a line of {name} that belongs to no source; it is damaged")

    def _source(self, cx: Connection, rules: Rules) -> None:
        record = next(self._reader.take("sources"))
        group = Group(record, *(self._reader.take(name) for name in OF_SOURCE[1:]))
        found = merge(cx, group, rules)
        self._count(record, found)

    def _count(self, record: Record, found: Merged) -> None:
        tally = self._tally
        tally.outcomes[found.outcome] += 1
        tally.drawers += found.drawers
        tally.masked_count += len(found.masked)
        tally.masked += found.masked[: max(0, SHOWN - len(tally.masked))]
        self._renamed.update(found.renamed)
        if found.outcome == "conflict":
            tally.conflict(f"source {record.get('path')}: {found.why}")

    # Tables that stand by themselves

    def _rows(self, cx: Connection, name: str) -> None:
        part = self._resolved(cx, name, list(islice(self._reader.take(name), ROWS_AT_ONCE // 4)))
        table = tables.tables[name]
        by, equal = _KEYED[name]
        for row in part:
            same = and_(*(table.c[column].is_not_distinct_from(row[column]) for column in by))
            held = cx.execute(select(table).where(same).limit(1)).first()
            if held is None:
                if self._may_come(cx, name, row):
                    cx.execute(insert(table).values(**row))
                    self._tally.rows[name] += 1
                    if name in ("registry", "entity_aliases"):
                        self._named.add(str(row["entity"]))
            elif any(getattr(held, column) != row[column] for column in equal):
                self._tally.conflict(
                    f"{name} {', '.join(str(row[column])[:60] for column in by)}: it is another here"
                )

    def _may_come(self, cx: Connection, name: str, row: Record) -> bool:
        """Whether everything that a row speaks of is here."""
        if name == "wing_names":
            taken = cx.execute(select(sources.c.id).where(sources.c.wing == row["old"]).limit(1)).first()
            if taken is not None:
                self._tally.conflict(f"wing {row['old']}: it was renamed there, and stands here")
            return taken is None
        if name in _NEEDED and row["drawer"] is None:
            return False
        entity = {
            "mentions": registry.c.entity,
            "registry": entities.c.id,
            "entity_aliases": entities.c.id,
        }.get(name)
        if entity is None:
            return True
        return cx.execute(select(entity).where(entity == row["entity"])).first() is not None

    def _versions(self, cx: Connection, name: str) -> None:
        """Merge the versions of one fact or tunnel: a history that is the beginning of the other goes on."""
        table = tables.tables[name]
        id_ = self._reader.peek.get("id")
        theirs = self._resolved(
            cx, name, list(self._reader.take(name, lambda record: record.get("id") == id_))
        )
        rows = cx.execute(select(table).where(table.c.id == id_).order_by(table.c.rid)).all()
        ours = [{column: getattr(row, column) for column in theirs[0]} for row in rows]
        if _begins(theirs, ours):
            return
        if not _begins(ours, theirs):
            self._tally.conflict(f"{name} {id_}: it has another history here")
            return
        if ours:
            ended = {column: theirs[len(ours) - 1][column] for column in _ENDS}
            cx.execute(update(table).where(table.c.rid == rows[-1].rid).values(**ended))
        for row in theirs[len(ours) :]:
            cx.execute(insert(table).values(**row))
            self._tally.rows[name] += 1

    def _resolved(self, cx: Connection, name: str, part: Sequence[Record]) -> list[Record]:
        """Return rows with values for all columns, sources and drawers by their numbers here."""
        columns = columns_of(name)
        wanted = [self._id(record.get(column.name)) for record in part for column in columns.drawer]
        rids: dict[str, int] = {}
        for batch in batches([id_ for id_ in wanted if id_]):
            query = select(drawers.c.id, drawers.c.rid).where(drawers.c.id.in_(batch))
            rids.update((id_, rid) for id_, rid in cx.execute(query))
        rows = []
        for record in part:
            row: Record = {column.name: decoded(column, record.get(column.name)) for column in columns.plain}
            for column in columns.drawer:
                row[column.name] = rids.get(self._id(record.get(column.name)))
            for wing in ("source_wing", "target_wing"):
                if wing in row:
                    row[wing] = present_name(cx, str(row[wing]))
            rows.append(row)
        return rows

    def _id(self, exported: object) -> str:
        """Return the id that a drawer of the export has here."""
        return self._renamed.get(str(exported), str(exported)) if exported else ""

    def _note_names(self, cx: Connection, rules: Rules) -> None:
        """Have names that came looked for in what was filed before; in an empty palace nothing was."""
        if self._named:
            names_changed(cx)
            if rules.link:
                for entity in sorted(self._named):
                    if cx.execute(select(registry).where(registry.c.entity == entity)).first() is not None:
                        look_back(cx, entity)
            self._named.clear()

    def _read_on(self) -> None:
        """Go on with names that were still to be looked for where the export was made."""
        waiting = [str(entity) for entity in self._head.about.get("unlinked") or ()]
        if waiting:
            with self._ledger.write() as cx:
                for entity in waiting:
                    if cx.execute(select(registry).where(registry.c.entity == entity)).first() is not None:
                        look_back(cx, entity)


class _Reader:
    """The rows of an export, one by one, with a look at the next."""

    def __init__(self, path: Path) -> None:
        self._rows = records(path)
        self._next = next(self._rows, None)
        self.read = 0
        """How many rows were taken."""

    @property
    def at_end(self) -> bool:
        """Whether no row is left."""
        return self._next is None

    @property
    def next_table(self) -> str:
        """The table of the next row, "" at the end."""
        return "" if self._next is None else self._next[0]

    @property
    def peek(self) -> Record:
        """The next row, which stays the next."""
        return {} if self._next is None else self._next[1]

    def take(self, name: str, wanted: Callable[[Record], bool] = lambda _: True) -> Iterator[Record]:
        """Take rows for as long as they are of a table and ``wanted``; sources one at a time."""
        while self._next is not None and self._next[0] == name and wanted(self._next[1]):
            row = self._next[1]
            self._next = next(self._rows, None)
            self.read += 1
            yield row
            if name == "sources":
                return


def _begins(early: Sequence[Record], late: Sequence[Record]) -> bool:
    """Whether a history is an earlier state of another, in which its last version had not ended yet."""
    if not early:
        return True
    last = len(early) - 1
    if last >= len(late) or list(early[:last]) != list(late[:last]):
        return False
    return early[last] in (late[last], {**late[last], **dict.fromkeys(_ENDS)})
