"""Merging one source of an export into the palace: new, known, gone on with, or another history altogether.

A source is merged in the caller's transaction, so that it is there whole or not at all. What the palace holds
is never replaced: a source that went on elsewhere goes on here, one whose history differs stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from sqlalchemy import Connection, and_, delete, exists, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from castle.errors import PalaceError
from castle.keep.layout import Record, columns_of, decoded
from castle.store.appending import APPENDED
from castle.store.drawer_rows import touch
from castle.store.filing import drawer_id, find_source
from castle.store.ledger import next_seqs, to_json
from castle.store.mentions import link_mentions
from castle.store.places import present_name
from castle.store.proofs import Grown, appended, whole
from castle.store.purge_guard import Guard
from castle.store.purged import STUB
from castle.store.schema import drawers, membership, revisions, sources, tombstones
from castle.store.session_tables import attachments, blobs, messages, sessions
from castle.store.sessions import drawer_key
from castle.text.secrets import secret_tag

Outcome = Literal["new", "grown", "known", "conflict"]

COPY_OF = "masked_copy_of"
"""Key in the metadata of a drawer that is a masked copy: the id of the exact one, in another palace."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Group:
    """A source in an export; the rows of each table are read in the order of the fields, once."""

    source: Record
    sessions: Iterator[Record]
    revisions: Iterator[Record]
    drawers: Iterator[Record]
    membership: Iterator[Record]
    tombstones: Iterator[Record]
    messages: Iterator[Record]
    attachments: Iterator[Record]

    def drain(self) -> None:
        """Pass over what was not read."""
        for name in (
            "sessions",
            "revisions",
            "drawers",
            "membership",
            "tombstones",
            "messages",
            "attachments",
        ):
            for _ in getattr(self, name):
                pass


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of a source: how many drawers came with it, and which of them are masked copies.

    ``renamed`` are drawers that have another id here, because their text or source is masked. ``why`` tells a
    conflict.
    """

    outcome: Outcome
    drawers: int = 0
    masked: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for all sources of one import.

    ``salt`` is the palace's, where tags have to be made anew with it; ``guard`` knows what was purged here;
    ``link`` has new drawers read for names.
    """

    salt: bytes | None
    guard: Guard | None
    link: bool


def merge(cx: Connection, group: Group, rules: Rules) -> Merged:
    """Merge a source in a write transaction. Raises PalaceError for an export that contradicts itself."""
    return _Merge(cx, group, rules).run()


class _Merge:
    """One source."""

    def __init__(self, cx: Connection, group: Group, rules: Rules) -> None:
        self._cx = cx
        self._group = group
        self._rules = rules
        self._key = str(group.source["key"])
        self._exact = not group.source.get("inexact")
        self._counts: dict[bytes, int] = {}
        self._rids: dict[str, int] = {}
        self._fresh: list[int] = []
        self._masked: list[str] = []
        self._renamed: dict[str, str] = {}

    def run(self) -> Merged:
        before = find_source(self._cx, self._key)
        session = list(self._group.sessions)
        history = [_values("revisions", row) for row in self._group.revisions]
        if before is None or not before.revision:
            outcome: Outcome = "new"
        elif self._exact:
            outcome = self._compare(before.id, history)
        else:
            return self._look_up()
        if outcome in ("known", "conflict"):
            self._group.drain()
            why = "the palace holds another history of it" if outcome == "conflict" else ""
            return Merged(outcome, why=why)
        rows = iter(self._drawers())
        if self._rules.guard is not None:
            held = list(rows)
            if self._rules.guard.find("".join(str(row["text"]) for row in held)):
                self._group.drain()
                return Merged("conflict", why="it holds text that was purged here")
            rows = iter(held)
        source, wing = self._source(before, session)
        self._write_revisions(source, history, 0 if before is None else before.revision)
        self._write_drawers(source, rows, wing)
        self._write_membership(source)
        self._write_rest(source)
        if not self._exact:
            rehash(self._cx, source, self._unhashed)
        if self._rules.link:
            link_mentions(self._cx, self._fresh)
        return Merged(outcome, len(self._fresh), tuple(self._masked), self._renamed)

    def _compare(self, source: int, history: Sequence[Record]) -> Outcome:
        query = select(revisions.c.number, revisions.c.sha256, revisions.c.size).where(
            revisions.c.source == source
        )
        ours = [tuple(row) for row in self._cx.execute(query.order_by(revisions.c.number))]
        theirs = [(row["number"], row["sha256"], row["size"]) for row in history]
        if ours[: len(theirs)] == theirs:
            return "known"
        return "grown" if theirs[: len(ours)] == ours else "conflict"

    def _look_up(self) -> Merged:
        """Tell whether every drawer of an inexact source is here, exact or as the same copy."""
        known = True
        for row in self._drawers():
            ids = [str(row["id"]), str(row["exported"])]
            held = self._cx.execute(select(drawers.c.id).where(drawers.c.id.in_(ids))).scalars().all()
            known = known and bool(held)
            if row["exported"] not in held and row["id"] in held:
                self._renamed[ids[1]] = ids[0]
        self._group.drain()
        if known:
            return Merged("known", renamed=self._renamed)
        return Merged("conflict", why="the palace holds another state of it, and this copy of it is masked")

    def _drawers(self) -> Iterator[Record]:
        """Yield the drawers with their hashes, and their ids as they follow from source and content."""
        for record in self._group.drawers:
            masked = record.pop("masked", False)
            row = _values("drawers", record)
            content = row["raw"] if row["raw"] is not None else str(row["text"]).encode("utf-8")
            sha = hashlib.sha256(content).digest()
            number = self._counts.get(sha, 0)
            self._counts[sha] = number + 1
            id_ = drawer_id(self._key, content, number)
            if self._exact and id_ != row["id"]:
                raise PalaceError(f"drawer {row['id']} of the export does not hold what its id says")
            row |= {"exported": row["id"], "id": id_, "sha256": sha}
            if masked:
                about = json.loads(row["metadata"] or "{}")
                row["metadata"] = to_json({**about, COPY_OF: row["exported"]})
                self._masked.append(id_)
            if self._rules.salt is not None and row["sealed"]:
                row["sealed"] = _tagged(row["text"], row["sealed"], self._rules.salt)
            yield row

    def _source(self, before: Any, session: Sequence[Record]) -> tuple[int, str | None]:
        """Write the source and its session; return its number, and the wing that it has here already."""
        values = _values("sources", {k: v for k, v in self._group.source.items() if k != "inexact"})
        if before is None or not before.revision:
            values["wing"] = present_name(self._cx, str(values["wing"]))
        if before is None:
            source = int(self._cx.execute(insert(sources).values(**values)).lastrowid)
        else:
            source = before.id
            kept = {"key", "kind", "project"} | ({"wing", "room"} if before.revision else set())
            changed = {name: value for name, value in values.items() if name not in kept}
            if before.revision:
                changed["forgotten_at"] = before.forgotten_at
            self._cx.execute(update(sources).where(sources.c.id == source).values(**changed))
            # What somebody staged for the next revision and has not completed is staged again by him.
            staged = and_(drawers.c.source == source, drawers.c.seq.is_(None), ~STUB)
            member = exists().where(membership.c.drawer == drawers.c.rid)
            self._cx.execute(delete(drawers).where(staged, ~member))
        for record in session:
            facts = {**_values("sessions", record), "source": source}
            self._cx.execute(upsert(sessions).values(**facts).on_conflict_do_update(("source",), set_=facts))
        return source, before.wing if before is not None and before.revision else str(values["wing"])

    def _write_revisions(self, source: int, history: Sequence[Record], after: int) -> None:
        rows = [
            {**row, "source": source, "sha256": row["sha256"] or b"", "size": row["size"] or 0}
            for row in history
            if row["number"] > after
        ]
        for row in rows:
            row["signature"] = row["signature"] or ""
        if rows:
            self._cx.execute(insert(revisions), rows)

    def _write_drawers(self, source: int, rows: Iterator[Record], wing: str | None) -> None:
        while part := list(islice(rows, _AT_ONCE)):
            ids = [row["id"] for row in part]
            query = select(drawers.c.id, drawers.c.rid, drawers.c.state, drawers.c.ended_at)
            held = {row.id: row for row in self._cx.execute(query.where(drawers.c.id.in_(ids)))}
            fresh = [row for row in part if row["id"] not in held]
            for row in part:
                if row["id"] in held:
                    self._go_on(held[row["id"]], row)
                    self._rids[row["exported"]] = held[row["id"]].rid
                elif row["id"] != row["exported"]:
                    self._renamed[row["exported"]] = row["id"]
            if fresh:
                first = next_seqs(self._cx, len(fresh))
                new = [
                    {**_without(row, "exported"), "source": source, "wing": wing, "seq": seq}
                    for seq, row in enumerate(fresh, start=first)
                ]
                self._cx.execute(insert(drawers), new)
                found = select(drawers.c.id, drawers.c.rid).where(
                    drawers.c.id.in_([row["id"] for row in new])
                )
                by_id = {id_: rid for id_, rid in self._cx.execute(found)}
                self._fresh += sorted(by_id.values())
                self._rids.update((row["exported"], by_id[row["id"]]) for row in fresh)

    def _go_on(self, held: Any, row: Record) -> None:
        """Bring a drawer to where the source has gone on to; a forgotten one stays so."""
        states = (held.state, row["state"])
        if states in (("current", "superseded"), ("superseded", "current")):
            touch(self._cx, [held.rid], state=row["state"], ended_at=row["ended_at"])

    def _write_membership(self, source: int) -> None:
        rows = (
            {**_values("membership", row), "source": source, "drawer": self._rids[row["drawer"]]}
            for row in self._group.membership
            if row["drawer"] in self._rids
        )
        statement = upsert(membership)
        key = ("source", "from_revision", "ordinal")
        ended = statement.on_conflict_do_update(key, set_={"to_revision": statement.excluded.to_revision})
        _in_parts(self._cx, ended, rows)

    def _write_rest(self, source: int) -> None:
        cx, fresh = self._cx, set(self._fresh)
        graves = (
            {**_values("tombstones", row), "drawer": self._rids[row["drawer"]]}
            for row in self._group.tombstones
            if self._rids.get(row["drawer"]) in fresh
        )
        _in_parts(cx, insert(tombstones), graves)
        self._unhashed: list[tuple[str, int]] = []
        statement = upsert(messages)
        key = ("source", "id", "version")
        newer = {"current": statement.excluded.current, "shown": statement.excluded.shown}
        _in_parts(cx, statement.on_conflict_do_update(key, set_=newer), self._messages(source))
        there = select(blobs.c.sha256)
        for record in self._group.attachments:
            row = {**_values("attachments", record), "source": source}
            if (
                row["blob"] is not None
                and cx.execute(there.where(blobs.c.sha256 == row["blob"])).first() is None
            ):
                row["blob"] = None
            cx.execute(upsert(attachments).values(**row).on_conflict_do_nothing())

    def _messages(self, source: int) -> Iterator[Record]:
        for record in self._group.messages:
            row = {**_values("messages", record), "source": source}
            if row["sha256"] is None:
                self._unhashed.append((str(row["id"]), int(row["version"])))
                row |= {"sha256": b"", "size": 0}
            yield row


def rehash(cx: Connection, source: int, unhashed: Sequence[tuple[str, int]]) -> None:
    """Give a copy that is not exact the hashes of what it holds, as its revisions and messages have them."""
    grown: Grown | None = None
    of_source = revisions.c.source == source
    query = select(revisions.c.number, revisions.c.state).where(of_source).order_by(revisions.c.number)
    for number, state in cx.execute(query).all():
        if state == APPENDED:
            grown = appended(cx, source, number, grown)
            digest, size = grown.digest, grown.size
        else:
            digest, size = whole(cx, source, number)
        this = update(revisions).where(of_source, revisions.c.number == number)
        cx.execute(this.values(sha256=digest, size=size))
    for id_, version in unhashed:
        content = select(drawers.c.text, drawers.c.raw).where(
            drawers.c.source == source, drawers.c.message_id == drawer_key(id_, version)
        )
        sha, size = hashlib.sha256(), 0
        for text, raw in cx.execute(content.order_by(drawers.c.rid)):
            part = text.encode("utf-8") if raw is None else raw
            sha.update(part)
            size += len(part)
        row = and_(messages.c.source == source, messages.c.id == id_, messages.c.version == version)
        cx.execute(update(messages).where(row).values(sha256=sha.digest(), size=size))


def _values(name: str, record: Record) -> Record:
    """Return a value for every column that an export has of a table; what is left out is None."""
    columns = columns_of(name)
    try:
        return {column.name: decoded(column, record.get(column.name)) for column in columns.plain}
    except ValueError as error:
        raise PalaceError(f"a row of {name} in the export is damaged; it was not imported") from error


def _without(row: Record, *names: str) -> Record:
    return {key: value for key, value in row.items() if key not in names}


def _tagged(text: str, sealed: str, salt: bytes) -> str:
    """Give sealed spans the tags that they have in this palace."""
    spans = json.loads(sealed)
    return to_json([[start, end, kind, secret_tag(text[start:end], salt)] for start, end, kind, _ in spans])


def _in_parts(cx: Connection, statement: Any, rows: Iterator[Record]) -> None:
    while part := list(islice(rows, _AT_ONCE)):
        cx.execute(statement, part)
