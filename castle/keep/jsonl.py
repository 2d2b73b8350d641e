"""The lossless export: every row of the ledger that is not made again by itself, one JSON object a line.

Without ``secrets`` what is sealed is masked, in texts and around them. A source with a masked drawer is a
copy that is not exact any more: its hashes, from which a secret might be guessed, are left out, and an import
files it as what it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, false, func, or_, select, union

from castle.clock import to_iso
from castle.keep.layout import FIRST, LAST, OF_SOURCE, Record, Writer, columns_of
from castle.store.entity_tables import mentions, name_backlog, registry
from castle.store.graph_tables import entities, entity_aliases, evidence, triples
from castle.store.ledger import get_value
from castle.store.mentions import LANGUAGES_KEY
from castle.store.palace import Palace
from castle.store.purged import STUB
from castle.store.schema import (
    SCHEMA_VERSION,
    drawers,
    project_aliases,
    projects,
    sources,
    wing_names,
)
from castle.store.sealing import COLUMNS, sealed_of, shown
from castle.store.session_tables import attachments, blobs, messages
from castle.store.sessions import drawer_key, message_of
from castle.text.secrets import DETECTOR_VERSION, find_secrets
from castle.text.served import mask_secrets

Progress = Callable[[str, int, int], None]

AT_ONCE = 200
_KEPT = 65_536
_OLD = drawers.c.detector_version < DETECTOR_VERSION
_SUSPECT = or_(drawers.c.sealed.is_not(None), _OLD, STUB)
_OWN = ("n_source", "n_rid", "is_stub")
"""Columns of a query that are no columns of the table."""

_PROSE: Mapping[str, tuple[str, ...]] = {
    "projects": ("name",),
    "project_aliases": ("value",),
    "sources": ("key", "path", "title"),
    "sessions": ("title", "cwd", "git_branch"),
    "drawers": ("speaker", "context", "added_by"),
    "messages": ("speaker", "tool"),
    "attachments": ("name", "ref"),
    "triples": ("valid_from_text", "valid_to_text"),
    "evidence": ("source", "valid_from_text", "valid_to_text"),
    "tunnels": ("label",),
    "receipts": ("transcript", "detail"),
}
"""Columns beside the texts of drawers in which somebody may have written a secret."""
_HASHES = ("sha256", "size", "signature")


def write_jsonl(
    palace: Palace, path: Path, *, wing: str | None, secrets: bool, progress: Progress | None = None
) -> Mapping[str, int]:
    """Write the export into the new file ``path``, from one snapshot of the ledger.

    Returns how many rows of each table are in it, and under ``masked`` and ``purged`` how many drawers are
    masked and left out. Raises OSError.
    """
    with palace.ledger.read() as cx, path.open("wb") as out:
        export = _Export(cx, Writer(out), wing, secrets, progress or (lambda *_: None))
        export.run(to_iso(palace.ledger.clock()))
    return {**export.out.counts, "masked": export.masked, "purged": export.purged}


@dataclass(frozen=True, slots=True)
class _Changed:
    """What of a source is not exported as it is: drawers that are masked, drawers that were purged.

    ``keys`` are the messages that these belong to, ``ids`` the same without their versions.
    """

    masked: frozenset[int] = frozenset()
    purged: frozenset[int] = frozenset()
    keys: frozenset[str] = frozenset()
    ids: frozenset[str] = field(default=frozenset())

    def __bool__(self) -> bool:
        return bool(self.masked or self.purged)


class _Export:
    """One run over one snapshot."""

    def __init__(self, cx: Connection, out: Writer, wing: str | None, secrets: bool, tell: Progress) -> None:
        self.out = out
        self.masked = self.purged = 0
        self._cx = cx
        self._wing = wing
        self._secrets = secrets
        self._tell = tell
        self._no_blobs: set[bytes] = set()

    def run(self, now: str) -> None:
        """Write everything, from head to foot."""
        self.out.head(self._about(now))
        for name in FIRST:
            self._table(name)
        self._sources()
        for name in LAST:
            # A file whose text is here masked is to be read again where the copy is.
            if self._secrets or name != "readings":
                self._table(name)
        self.out.foot()

    def _about(self, now: str) -> Record:
        embedder = json.loads(get_value(self._cx, "embedder") or "{}")
        about: Record = {
            "schema": SCHEMA_VERSION,
            "castle": version("cognitive-castle"),
            "created_at": now,
            "exact": self._secrets,
            "wing": self._wing,
            "embedder": embedder.get("name"),
            "languages": get_value(self._cx, LANGUAGES_KEY),
            "unlinked": list(self._cx.execute(select(name_backlog.c.entity)).scalars()),
        }
        if self._secrets:
            # The key of the tags: with it, a short secret could be guessed from its tag.
            about["salt"] = get_value(self._cx, "salt")
        return about

    def _table(self, name: str) -> None:
        """Write a table that stands by itself."""
        query = _rows_of(name)
        if self._wing is not None:
            query = query.where(_of_wing(name, self._wing))
        for row in self._cx.execute(query.execution_options(yield_per=AT_ONCE)):
            record = dict(row._mapping)
            if not self._secrets:
                if name == "blobs" and _holds_secret(row.data):
                    self._no_blobs.add(row.sha256)
                    continue
                record = _masked(name, record)
            self.out.row(name, record)

    def _sources(self) -> None:
        """Write every source with what belongs to it, from one stream of rows for each table."""
        query = _rows_of("sources").where(sources.c.revision > 0)
        if self._wing is not None:
            query = query.where(sources.c.wing == self._wing)
        total = self._cx.execute(select(func.count()).select_from(drawers)).scalar_one()
        streams = {name: _Stream(self._cx, name) for name in OF_SOURCE[1:]}
        suspects = self._suspects()
        for row in self._cx.execute(query.execution_options(yield_per=AT_ONCE)):
            record = _plain(row)
            changed = self._changed(row.n_source) if row.n_source in suspects else _Changed()
            inexact = bool(changed)
            if not self._secrets:
                key = record["key"]
                record = _masked("sources", record)
                inexact = inexact or record["key"] != key
            if inexact:
                record |= {"inexact": True, "signature": ""}
            self.out.row("sources", record)
            for name in OF_SOURCE[1:]:
                for other in streams[name].of(row.n_source):
                    found = self._of_source(name, other, changed)
                    if found is not None:
                        if inexact and name == "revisions":
                            found = {key: value for key, value in found.items() if key not in _HASHES}
                        self.out.row(name, found)
            self._tell("drawers", self.out.counts["drawers"], total)

    def _suspects(self) -> set[int]:
        """Return the sources of which something may not be exported as it is."""
        which = STUB if self._secrets else _SUSPECT
        return set(self._cx.execute(select(drawers.c.source).where(which).distinct()).scalars())

    def _changed(self, source: int) -> _Changed:
        rows = self._cx.execute(
            select(*COLUMNS, STUB.label("is_stub")).where(drawers.c.source == source, _SUSPECT)
        ).all()
        purged = [row for row in rows if row.is_stub]
        masked = [] if self._secrets else [r for r in rows if not r.is_stub and sealed_of(self._cx, r)]
        keys = frozenset(row.message_id for row in (*purged, *masked))
        return _Changed(
            frozenset(row.rid for row in masked),
            frozenset(row.rid for row in purged),
            keys,
            frozenset(message_of(key)[0] for key in keys),
        )

    def _of_source(self, name: str, row: Any, changed: _Changed) -> Record | None:
        """Return a row of a source as it is exported, None for one that is left out."""
        record = _plain(row)
        if name in ("drawers", "membership", "tombstones") and row.n_rid in changed.purged:
            self.purged += name == "drawers"
            return None
        if not self._secrets:
            record = _masked(name, record)
        if name == "drawers":
            return self._drawer(row, record, changed)
        if name == "messages" and row.id in changed.ids:
            return self._message(row, record, changed)
        if name == "attachments" and row.blob in self._no_blobs:
            record["blob"] = None
        return record

    def _drawer(self, row: Any, record: Record, changed: _Changed) -> Record:
        del (
            record["sha256"],
            record["seq"],
        )  # the one is computed again, the other counts the palace's changes
        if row.n_rid in changed.masked:
            self.masked += 1
            parts = {"rid": row.n_rid, "text": row.text, "sealed": row.sealed}
            seen = SimpleNamespace(**parts, detector_version=row.detector_version)
            record |= {"text": shown(self._cx, seen), "raw": None, "masked": True}
        if not self._secrets:
            record |= {"sealed": None, "detector_version": DETECTOR_VERSION}
        return record

    def _message(self, row: Any, record: Record, changed: _Changed) -> Record | None:
        """Leave out the hash of a message that is not whole, and a message of which nothing else is left."""
        key = drawer_key(row.id, row.version)
        held = select(drawers.c.rid).where(
            drawers.c.source == row.n_source, drawers.c.message_id == key, ~STUB, drawers.c.seq.is_not(None)
        )
        if self._cx.execute(held.limit(1)).first() is None:
            return None
        return {k: v for k, v in record.items() if k not in _HASHES} if key in changed.keys else record


class _Stream:
    """The rows of one table in the order of their sources, taken source by source."""

    def __init__(self, cx: Connection, name: str) -> None:
        self._rows = iter(cx.execute(_rows_of(name).execution_options(yield_per=AT_ONCE)))
        self._next: Any = next(self._rows, None)

    def of(self, source: int) -> Iterator[Any]:
        """Yield the rows of a source, and pass over those of sources before it."""
        while self._next is not None and self._next.n_source <= source:
            row, self._next = self._next, next(self._rows, None)
            if row.n_source == source:
                yield row


def _plain(row: Any) -> Record:
    return {key: value for key, value in row._mapping.items() if key not in _OWN}


def _rows_of(name: str) -> Select[Any]:
    """Return the query for the rows of a table as an export has them, in the order it has them."""
    columns = columns_of(name)
    table = columns.table
    chosen: list[ColumnElement[Any]] = list(columns.plain)
    joined: Any = table
    if name not in OF_SOURCE:
        for column in columns.source:
            other = sources.alias()
            joined = joined.outerjoin(other, other.c.id == column)
            chosen.append(other.c.key.label(column.name))
    for column in columns.drawer:
        named = drawers.alias()
        joined = joined.outerjoin(named, named.c.rid == column)
        chosen.append(named.c.id.label(column.name))
        if name in OF_SOURCE:
            chosen += [named.c.rid.label("n_rid")]
    query = select(*chosen).select_from(joined)
    if name in OF_SOURCE:
        if name == "sources":
            number = sources.c.id
        else:
            number = named.c.source if name == "tombstones" else table.c["source"]
        query = query.add_columns(number.label("n_source"))
    if name == "drawers":
        query = query.add_columns(table.c.rid.label("n_rid")).where(table.c.seq.is_not(None))
    return query.order_by(*_order(name, table))


def _order(name: str, table: Any) -> tuple[Any, ...]:
    if name in ("triples", "tunnels"):  # all versions of one follow one another
        versions = table.alias()
        first = select(func.min(versions.c.rid)).where(versions.c.id == table.c.id).scalar_subquery()
        return first, table.c.rid
    orders: Mapping[str, tuple[Any, ...]] = {
        "drawers": (drawers.c.source, drawers.c.rid),
        "messages": (messages.c.source, messages.c.position),
        "evidence": (evidence.c.rid,),
    }
    return orders.get(name, tuple(table.primary_key.columns))


def _of_wing(name: str, wing: str) -> ColumnElement[bool]:
    """Return which rows of a table that stands by itself go with the sources of one wing."""
    of_wing = select(sources.c.id).where(sources.c.wing == wing)
    inside = select(drawers.c.rid).where(drawers.c.source.in_(of_wing))
    facts = select(evidence.c.triple).where(evidence.c.drawer.in_(inside))
    named = union(
        select(mentions.c.entity).where(mentions.c.drawer.in_(inside)),
        select(triples.c.subject).where(triples.c.id.in_(facts)),
        select(triples.c.object).where(triples.c.id.in_(facts)),
    )
    owned = select(sources.c.project).where(sources.c.wing == wing)
    conditions: dict[str, ColumnElement[bool]] = {
        "projects": projects.c.id.in_(owned),
        "project_aliases": project_aliases.c.project.in_(owned),
        "wing_names": wing_names.c.new == wing,
        "entities": entities.c.id.in_(named),
        "entity_aliases": entity_aliases.c.entity.in_(named),
        "registry": registry.c.entity.in_(named),
        "blobs": blobs.c.sha256.in_(select(attachments.c.blob).where(attachments.c.source.in_(of_wing))),
        "triples": triples.c.id.in_(facts),
    }
    table = columns_of(name).table
    if name in conditions:
        return conditions[name]
    if name in ("tunnels", "receipts", "readings"):  # they join wings, or belong to files
        return false()
    return cast("ColumnElement[bool]", table.c.drawer.in_(inside))


def _masked(name: str, record: Record) -> Record:
    """Return a record with the secrets in it masked, apart from the text of a drawer."""
    found = dict(record)
    for column in _PROSE.get(name, ()):
        if isinstance(found.get(column), str):
            found[column] = _mask(found[column])
    if isinstance(found.get("metadata"), str):
        found["metadata"] = _masked_json(found["metadata"])
    return found


@lru_cache(maxsize=_KEPT)
def _mask(text: str) -> str:
    return mask_secrets(text, b"")


def _masked_json(text: str) -> str:
    """Mask what a JSON text holds; where a mask stands across its marks, each string is read alone."""
    masked = _mask(text)
    try:
        json.loads(masked)
    except ValueError:
        return json.dumps(_masked_value(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
    return masked


def _masked_value(value: object) -> object:
    if isinstance(value, str):
        return _mask(value)
    if isinstance(value, list):
        return [_masked_value(item) for item in value]
    if isinstance(value, dict):
        return {_mask(key): _masked_value(item) for key, item in value.items()}
    return value


def _holds_secret(data: bytes) -> bool:
    """Whether an attached file is a text with a secret in it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return bool(find_secrets(text, b""))
