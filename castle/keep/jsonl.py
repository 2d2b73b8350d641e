"""The lossless export: every row of the ledger that is not made again by itself, one JSON object a line.

Without ``secrets`` what is sealed is masked, in texts and around them. A source with a masked drawer is a copy
that is not exact any more: its hashes, from which a secret might be guessed, are left out, and an import files
it as what it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select, union

from castle.clock import to_iso
from castle.keep.layout import FIRST, LAST, OF_SOURCE, Record, Writer, columns_of
from castle.store.entity_tables import mentions, registry
from castle.store.graph_tables import entities, entity_aliases, evidence, triples
from castle.store.ledger import get_value
from castle.store.mentions import languages_of
from castle.store.palace import Palace
from castle.store.purged import STUB
from castle.store.schema import SCHEMA_VERSION, drawers, project_aliases, projects, sources, tables, wing_names
from castle.store.sealing import COLUMNS, sealed_of, shown
from castle.store.session_tables import attachments, blobs
from castle.text.secrets import DETECTOR_VERSION
from castle.text.served import mask_secrets

Progress = Callable[[str, int, int], None]

AT_ONCE = 200
_KEPT = 65_536

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
}
"""Columns beside the texts of drawers in which somebody may have written a secret."""
_HASHES: Mapping[str, tuple[str, ...]] = {"revisions": ("sha256", "size"), "messages": ("sha256", "size")}


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


class _Export:
    """One run over one snapshot."""

    def __init__(
        self, cx: Connection, out: Writer, wing: str | None, secrets: bool, tell: Progress
    ) -> None:
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
        if self._wing is None:
            last = LAST
        else:
            last = tuple(name for name in LAST if name not in ("tunnels", "receipts", "readings"))
        for name in last:
            if self._secrets or name not in ("receipts", "readings"):
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
            "languages": list(languages_of(self._cx)),
            "detector": DETECTOR_VERSION,
        }
        if self._secrets:
            # The key of the tags: with it, a short secret could be guessed from its tag.
            about["salt"] = get_value(self._cx, "salt")
        return about

    # Tables that stand by themselves

    def _table(self, name: str) -> None:
        query = _rows_of(name)
        condition = None if self._wing is None else _of_wing(name, self._wing)
        if condition is not None:
            query = query.where(condition)
        for row in self._cx.execute(query.execution_options(yield_per=AT_ONCE)):
            record = dict(row._mapping)
            if not self._secrets:
                if name == "blobs" and _holds_secret(row.data):
                    self._no_blobs.add(row.sha256)
                    continue
                record = _masked(name, record)
            self.out.row(name, record)

    # Sources

    def _sources(self) -> None:
        query = _rows_of("sources").add_columns(sources.c.id.label("_source")).where(sources.c.revision > 0)
        if self._wing is not None:
            query = query.where(sources.c.wing == self._wing)
        total = self._cx.execute(select(func.count()).select_from(drawers)).scalar_one()
        streams = {name: _Stream(self._cx, name) for name in OF_SOURCE[1:]}
        with_stubs = set(self._cx.execute(select(drawers.c.source).where(STUB).distinct()).scalars())
        sealed = self._sealed_sources()
        ordered = query.order_by(sources.c.id).execution_options(yield_per=AT_ONCE)
        for row in self._cx.execute(ordered):
            number = row._source
            record = {key: value for key, value in row._mapping.items() if key != "_source"}
            masks = self._sealed_drawers(number) if number in sealed else set()
            if not self._secrets:
                plain = record
                record = _masked("sources", record)
                inexact = bool(masks) or record["key"] != plain["key"]
            else:
                inexact = False
            if inexact or number in with_stubs:
                record |= {"inexact": True, "signature": ""}
            self.out.row("sources", record)
            for name in OF_SOURCE[1:]:
                for other in streams[name].of(number):
                    self._row_of_source(name, other, "inexact" in record, masks)
            self._tell("drawers", self.out.counts["drawers"], total)

    def _sealed_sources(self) -> set[int]:
        """Return the sources that may have something sealed; none where everything is to be exact."""
        if self._secrets:
            return set()
        old = drawers.c.detector_version < DETECTOR_VERSION
        query = select(drawers.c.source).where(or_(drawers.c.sealed.is_not(None), old)).distinct()
        return set(self._cx.execute(query).scalars())

    def _sealed_drawers(self, source: int) -> set[int]:
        """Return the drawers of a source that have something sealed."""
        old = drawers.c.detector_version < DETECTOR_VERSION
        suspect = or_(drawers.c.sealed.is_not(None), old)
        query = select(*COLUMNS).where(drawers.c.source == source, suspect)
        return {row.rid for row in self._cx.execute(query).all() if sealed_of(self._cx, row)}

    def _row_of_source(self, name: str, row: Any, inexact: bool, masks: set[int]) -> None:
        record = {key: value for key, value in row._mapping.items() if not key.startswith("_")}
        if name in ("drawers", "membership", "tombstones") and row._stub:
            self.purged += name == "drawers"
            return
        if not self._secrets:
            record = _masked(name, record)
        if name == "drawers":
            del record["sha256"], record["seq"]
            if row._rid in masks:
                self.masked += 1
                record |= {"text": shown(self._cx, _Row(row)), "raw": None, "masked": True}
            if not self._secrets:
                record |= {"sealed": None, "detector_version": DETECTOR_VERSION}
        elif inexact and name in _HASHES and not self._message_is_whole(name, row, masks):
            if name == "messages" and not row.current and not self._has_drawers(row):
                return  # nothing is left of it but its hash
            for column in _HASHES[name]:
                del record[column]
            record.pop("signature", None)
        elif name == "attachments" and row.blob in self._no_blobs:
            record["blob"] = None
        self.out.row(name, record)
