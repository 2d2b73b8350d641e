"""Filing: how the text of a source becomes drawers, revisions and membership.

A small source is filed in one transaction. A large one is staged in several: its drawers have no ``seq``
and no membership until ``complete`` gives them both at once, so nobody ever sees half a source. A source that
only grows is filed with ``append``: what is staged follows what it holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from sqlalchemy import Connection, Row, func, insert, select, update

from castle.errors import CastleError
from castle.records import Chunk
from castle.store.appending import APPENDED, Tail, link, repeats, tail_of, unlink
from castle.store.drawer_rows import Coming, begin_drawers, end_drawers, insertion, store_drawers, touch
from castle.store.ledger import Ledger, batches, run, to_json
from castle.store.members import (
    Leaving,
    Member,
    close_members,
    held_members,
    open_members,
    same_place,
)
from castle.store.proofs import whole
from castle.store.purge_guard import Quotes, cut, guard_of, stands
from castle.store.purge_tables import purged
from castle.store.purged import keyed, nothing_of, salt_of, stubs_among
from castle.store.schema import membership, revisions, sources
from castle.text.secrets import DETECTOR_VERSION

Change = Literal["new", "changed", "unchanged"]

_INSERT_REVISION = insertion(
    "revisions",
    (
        "source",
        "number",
        "sha256",
        "size",
        "signature",
        "normalizer",
        "encoding",
        "authored_at",
        "filed_at",
        "added_by",
        "state",
    ),
)
_INSERT_SOURCE = (
    "INSERT INTO sources(key, kind, project, path, title, wing, room, revision, signature) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, 0, '')"
)
_UPDATE_SOURCE = (
    "UPDATE sources SET revision = ?, signature = ?, gone_at = NULL, path = ?, wing = ?, room = ? "
    "WHERE id = ?"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Which source, and where it belongs.

    ``path`` is where it lies now. ``title`` is what it is called in its project; the index of words has it.
    """

    key: str
    kind: str
    path: str
    title: str
    wing: str
    room: str
    project: str | None = None


@dataclass(frozen=True, slots=True)
class NewDrawer:
    """A chunk with all that the miner knows about it; an empty ``room`` is the source's."""

    chunk: Chunk
    raw: bytes | None
    hall: str
    kind: str
    context: str
    authored_at: int
    role: str = ""
    speaker: str = ""
    message_id: str = ""
    room: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    def content(self) -> bytes:
        """Return the exact bytes."""
        return self.chunk.text.encode("utf-8") if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a source that a revision records. ``signature`` lets the miner skip it unread.

    A revision that is appended computes ``sha256`` and ``size`` itself; what is given there is not read.
    """

    sha256: bytes
    size: int
    signature: str
    normalizer: str
    encoding: str
    authored_at: int
    added_by: str


@dataclass(frozen=True, slots=True)
class Filed:
    """What completing a revision changed, in drawers; ``purged`` are the lines that were left out."""

    change: Change
    revision: int
    new: int = 0
    kept: int = 0
    superseded: int = 0
    purged: tuple[tuple[int, int], ...] = ()


class OvertakenError(CastleError):
    """Another process completed a revision of the source meanwhile; read it again."""


class Filing:
    """The filing of one source's next revision, on top of its revision ``base`` (0 for none).

    With ``append`` everything that revision holds stays, and what is staged follows it: ordinals and offsets
    go on from its end (``start`` and ``end`` of the chunks are not read, their lines are), and only what is
    new is written. ``retire`` names what leaves all the same.
    """

    def __init__(self, ledger: Ledger, place: Place, base: int, *, append: bool = False) -> None:
        self._ledger = ledger
        self._place = place
        self._base = base
        self._append = append
        self._source: int | None = None
        self._tail: Tail | None = None
        self._own_rooms = False
        self._retired: dict[int, Leaving] = {}
        self._members: list[Member] = []
        self._seen: dict[bytes, int] = {}
        self._gaps: list[tuple[int, int]] = []
        self._left_out = Quotes(())

    def stage(self, cx: Connection, items: Sequence[NewDrawer], version_by: str) -> None:
        """Put drawers into the ledger, invisible until ``complete``; ``version_by`` is who files them.

        Text that was purged is left out: a stub stands in its place.
        """
        source = self._source if self._source is not None else ensure_source(cx, self._place)
        now = self._ledger.clock()
        salt = salt_of(cx)
        guard = guard_of(cx) if salt is not None else None
        pieces: list[tuple[NewDrawer, int | None]] = [(item, None) for item in items]
        if guard is not None:
            pieces = self._without_quotes(cut(items, guard, partial(stands, cx, source)))
        contents = [item.content() for item, _ in pieces]
        hashes = [hashlib.sha256(content).digest() for content in contents]
        self._own_rooms = self._own_rooms or any(item.room for item in items)
        if self._append:
            self._recall(cx, source, hashes, salt)
        rows = [
            self._row(item, source, now, version_by, content, sha)
            for (item, _), content, sha in zip(pieces, contents, hashes, strict=True)
        ]
        for row, (_, purge), sha in zip(rows, pieces, hashes, strict=True):
            if purge is not None and salt is not None:
                row |= nothing_of(salt, sha)
        rids = store_drawers(cx, rows)
        stubs = stubs_among(cx, rids) if salt is not None else {}
        for (item, purge), rid, content, sha in zip(pieces, rids, contents, hashes, strict=True):
            chunk = item.chunk
            start, end = chunk.start, chunk.end
            if self._append:
                start = self._members[-1].end if self._members else self._end_of(cx, source).end
                end = start + len(chunk.text)
            if rid in stubs:
                self._gaps.append((chunk.first_line, chunk.last_line))
                if purge is not None:
                    values = {"drawer": rid, "purge": purge, "size": len(content)}
                    cx.execute(insert(purged).prefix_with("OR IGNORE").values(**values))
            digest = stubs.get(rid, sha)
            self._members.append(
                Member(rid, digest, len(content), start, end, chunk.first_line, chunk.last_line)
            )

    def leave_out(self, texts: Iterable[str]) -> None:
        """Let no context of what is staged quote these texts, which were purged."""
        self._left_out.add(texts)

    def quotes(self, text: str) -> bool:
        """Whether a text quotes what was left out."""
        return text in self._left_out

    def _without_quotes(
        self, pieces: Iterable[tuple[NewDrawer, int | None]]
    ) -> list[tuple[NewDrawer, int | None]]:
        """Return pieces with contexts that do not quote those of them which were purged."""
        found = list(pieces)
        self.leave_out(item.chunk.text for item, purge in found if purge is not None)
        if self._left_out:
            found = [
                (replace(item, context=self._left_out.without(item.context)), purge) for item, purge in found
            ]
        return found

    def retire(self, cx: Connection, rids: Sequence[int]) -> int:
        """Let drawers leave the source with this appended revision; return how many of them it holds."""
        if not self._append:
            raise ValueError("a revision that is filed whole says by what it holds which drawers have left")
        source = ensure_source(cx, self._place)
        self._retired.update((leaving.rid, leaving) for leaving in held_members(cx, source, rids))
        return len(self._retired)

    def overtaken(self, cx: Connection) -> bool:
        """Whether another process completed a revision since ``base``."""
        row = run(cx, "SELECT id, revision FROM sources WHERE key = ?", (self._place.key,)).fetchone()
        self._source, revision = row if row is not None else (None, 0)
        return bool(revision != self._base)

    def complete(self, cx: Connection, version: Version, coming: Coming | None = None) -> Filed:
        """Make the staged drawers the source's current revision, in this transaction.

        With ``coming``, which others in the transaction share, the caller ends with ``coming.begin``. Raises
        OvertakenError when the source is not at the revision that this one was to follow.
        """
        if self.overtaken(cx):
            raise OvertakenError(f"{self._place.path} was filed by another process at the same time")
        source = self._source if self._source is not None else ensure_source(cx, self._place)
        own = coming or Coming()
        filed = (self._extend if self._append else self._replace)(cx, source, version, own)
        if coming is None:
            own.begin(cx)
        return filed

    def _replace(self, cx: Connection, source: int, version: Version, coming: Coming) -> Filed:
        number = self._base + 1
        current = self._current(cx, source)
        begin = [
            (ordinal, member)
            for ordinal, member in enumerate(self._members)
            if not same_place(current.get(member.rid), ordinal, member)
        ]
        staying = {member.rid for member in self._members}
        begun = {member.rid for _, member in begin}
        ended = [rid for rid in current if rid not in staying]
        close_members(cx, source, number, [*ended, *(rid for rid in current if rid in begun)])
        open_members(cx, source, number, begin)
        if self._gaps:
            version = replace(version, sha256=whole(cx, source, number)[0])
            if not (begin or ended) and _is_last(cx, source, self._base, version.sha256):
                _note_seen(cx, source, self._place, version.signature)
                return Filed("unchanged", self._base, 0, len(staying), purged=tuple(self._gaps))
        arrived = [rid for rid in dict.fromkeys(m.rid for _, m in begin) if rid not in current]
        new = begin_drawers(cx, arrived, coming)
        end_drawers(cx, ended, self._ledger.clock())
        self._record(cx, source, version, "complete")
        if self._base:
            _gather(cx, source, self._place.wing, None if self._own_rooms else self._place.room)
        change: Change = "new" if number == 1 else "changed"
        kept = len(staying) - new
        return Filed(change, number, new, kept, superseded=len(ended), purged=tuple(self._gaps))

    def _current(self, cx: Connection, source: int) -> dict[int, Row[tuple[object, ...]]]:
        """Return what the revision before holds, by drawer."""
        if not self._base:
            return {}
        query = select(membership).where(membership.c.source == source, membership.c.to_revision.is_(None))
        return {member.drawer: member for member in cx.execute(query)}

    def _extend(self, cx: Connection, source: int, version: Version, coming: Coming) -> Filed:
        """Append; a revision that would add nothing is not made, what else is new of the source is noted."""
        before = self._end_of(cx, source)
        place = self._place
        if cx.execute(select(sources.c.wing).where(sources.c.id == source)).scalar() != place.wing:
            _gather(cx, source, place.wing, None)
        if not (self._members or self._retired) and self._base:
            _note_seen(cx, source, place, version.signature)
            return Filed("unchanged", self._base, 0, _size_of(cx, source))
        number = self._base + 1
        digest, size = before.digest, before.size
        for member in sorted(self._retired.values(), key=lambda member: member.ordinal):
            digest, size = unlink(digest, member.sha256), size - member.size
        close_members(cx, source, number, list(self._retired))
        end_drawers(cx, list(self._retired), self._ledger.clock())
        kept = _size_of(cx, source)
        open_members(cx, source, number, list(enumerate(self._members, start=before.ordinal)))
        new = begin_drawers(cx, [member.rid for member in self._members], coming)
        for added in self._members:
            digest, size = link(digest, added.sha256), size + added.size
        self._record(cx, source, replace(version, sha256=digest, size=size), APPENDED)
        change: Change = "new" if number == 1 else "changed"
        gone = len(self._retired)
        return Filed(change, number, new, kept, superseded=gone, purged=tuple(self._gaps))

    def _record(self, cx: Connection, source: int, version: Version, state: str) -> None:
        """Write the revision down and make it the source's current one."""
        number = self._base + 1
        row = _revision_row(source, number, version, self._ledger.clock())
        run(cx, _INSERT_REVISION, tuple({**row, "state": state}.values()))
        place = self._place
        values = (number, version.signature, place.path, place.wing, place.room, source)
        run(cx, _UPDATE_SOURCE, values)

    def _end_of(self, cx: Connection, source: int) -> Tail:
        if self._tail is None:
            self._tail = tail_of(cx, source, self._base)
        return self._tail

    def _recall(self, cx: Connection, source: int, hashes: Sequence[bytes], salt: bytes | None) -> None:
        """Go on counting equal contents from where the base revision stopped; those purged count, too."""
        unknown = [sha for sha in dict.fromkeys(hashes) if sha not in self._seen]
        for batch in batches(unknown):
            self._seen.update(repeats(cx, source, batch))
            for sha in batch if salt is not None else ():
                hidden = keyed(salt or b"", sha)
                self._seen[sha] += repeats(cx, source, [hidden])[hidden]

    def _row(
        self, item: NewDrawer, source: int, now: int, added_by: str, content: bytes, sha: bytes
    ) -> dict[str, object]:
        occurrence = self._seen.get(sha, 0)
        self._seen[sha] = occurrence + 1
        chunk = item.chunk
        spans = [[s.start, s.end, s.kind, s.tag] for s in chunk.sealed]
        return {
            "id": drawer_id(self._place.key, content, occurrence),
            "seq": None,
            "source": source,
            "wing": self._place.wing,
            "room": item.room or self._place.room,
            "hall": item.hall,
            "kind": item.kind,
            "role": item.role,
            "speaker": item.speaker,
            "message_id": item.message_id,
            "text": chunk.text,
            "raw": item.raw,
            "sha256": sha,
            "sealed": to_json(spans) if spans else None,
            "detector_version": DETECTOR_VERSION,
            "context": item.context,
            "authored_at": item.authored_at,
            "filed_at": now,
            "ended_at": None,
            "added_by": added_by,
            "state": "current",
            "metadata": to_json(dict(item.metadata)) if item.metadata else None,
        }


def drawer_id(source_key: str, content: bytes, occurrence: int) -> str:
    """Return the id of the ``occurrence``-th drawer (from 0) with this content in the source."""
    digest = hashlib.sha256()
    for part in (source_key.encode("utf-8"), content, str(occurrence).encode("ascii")):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:24]


def _is_last(cx: Connection, source: int, number: int, sha256: bytes) -> bool:
    """Whether a source's revision ``number`` has this hash."""
    which = (revisions.c.source == source, revisions.c.number == number, revisions.c.sha256 == sha256)
    return cx.execute(select(revisions.c.number).where(*which)).first() is not None


def _note_seen(cx: Connection, source: int, place: Place, signature: str) -> None:
    values = {"path": place.path, "wing": place.wing, "room": place.room, "signature": signature}
    cx.execute(update(sources).where(sources.c.id == source).values(**values))


def find_source(cx: Connection, key: str) -> Row[tuple[object, ...]] | None:
    """Return the ``sources`` row with this key."""
    return cx.execute(select(sources).where(sources.c.key == key)).first()


def ensure_source(cx: Connection, place: Place) -> int:
    """Return the number of the source, registering it when it is not known."""
    known = run(cx, "SELECT id FROM sources WHERE key = ?", (place.key,)).fetchone()
    if known is not None:
        return int(known[0])
    values = (place.key, place.kind, place.project, place.path, place.title, place.wing, place.room)
    return int(run(cx, _INSERT_SOURCE, values).lastrowid or 0)


def mark_seen(cx: Connection, source: int, *, path: str, wing: str, room: str, signature: str) -> int:
    """Record that a source was met again with the same content; return how many drawers moved with it."""
    _note_seen(cx, source, Place("", "", path, "", wing, room), signature)
    return _gather(cx, source, wing, room)


def _gather(cx: Connection, source: int, wing: str, room: str | None) -> int:
    """Bring every drawer of a source to its place; with no ``room``, each stays in its own."""
    elsewhere, values = (
        ("(wing != ? OR room != ?)", (wing, room)) if room is not None else ("wing != ?", (wing,))
    )
    # Where one source has most of what was counted, SQLite would read every drawer there is.
    held = "drawers INDEXED BY ix_drawers_source"
    query = f"SELECT rid FROM {held} WHERE source = ? AND seq IS NOT NULL AND {elsewhere}"
    rids = [rid for (rid,) in run(cx, query, (source, *values))]
    touch(cx, rids, wing=wing, **({} if room is None else {"room": room}))
    return len(rids)


def end_source(cx: Connection, ledger: Ledger, source: int, actor: str) -> int:
    """Record that a source is gone: an empty revision; return how many drawers are superseded by it."""
    row = cx.execute(select(sources).where(sources.c.id == source)).one()
    now = ledger.clock()
    number = row.revision + 1
    rids = [
        rid
        for (rid,) in cx.execute(
            select(membership.c.drawer).where(
                membership.c.source == source, membership.c.to_revision.is_(None)
            )
        )
    ]
    close_members(cx, source, number, rids)
    end_drawers(cx, rids, now)
    version = Version(hashlib.sha256(b"").digest(), 0, "", "", "", now, actor)
    cx.execute(insert(revisions), {**_revision_row(source, number, version, now), "state": "gone"})
    cx.execute(
        update(sources).where(sources.c.id == source).values(revision=number, signature="", gone_at=now)
    )
    return len(rids)


def _size_of(cx: Connection, source: int) -> int:
    """Return how many drawers the current revision of a source holds."""
    query = select(func.count()).where(membership.c.source == source, membership.c.to_revision.is_(None))
    return cx.execute(query).scalar() or 0


def _revision_row(source: int, number: int, version: Version, now: int) -> dict[str, object]:
    return {
        "source": source,
        "number": number,
        "sha256": version.sha256,
        "size": version.size,
        "signature": version.signature,
        "normalizer": version.normalizer,
        "encoding": version.encoding,
        "authored_at": version.authored_at,
        "filed_at": now,
        "added_by": version.added_by,
        "state": "complete",
    }
