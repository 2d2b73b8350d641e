"""Filing: how the text of a source becomes drawers, revisions and membership.

A small source is filed in one transaction. A large one is staged in several: its drawers have no ``seq``
and no membership until ``complete`` gives them both at once, so nobody ever sees half a source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from castle.errors import CastleError
from castle.records import Chunk
from castle.store.ledger import Ledger, next_seqs, to_json
from castle.store.schema import drawers, membership, revisions, sources
from castle.text.secrets import DETECTOR_VERSION

_IN_LIMIT = 500

Change = Literal["new", "changed", "unchanged"]
T = TypeVar("T")


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
    """A chunk with all that the miner knows about it."""

    chunk: Chunk
    raw: bytes | None
    hall: str
    kind: str
    context: str
    authored_at: int
    role: str = ""
    speaker: str = ""
    message_id: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    def content(self) -> bytes:
        """Return the exact bytes."""
        return self.chunk.text.encode("utf-8") if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a source that a revision records. ``signature`` lets the miner skip it unread."""

    sha256: bytes
    size: int
    signature: str
    normalizer: str
    encoding: str
    authored_at: int
    added_by: str


@dataclass(frozen=True, slots=True)
class Filed:
    """What completing a revision changed, in drawers."""

    change: Change
    revision: int
    new: int = 0
    kept: int = 0
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class _Member:
    rid: int
    start: int
    end: int
    first_line: int
    last_line: int


class OvertakenError(CastleError):
    """Another process completed a revision of the source meanwhile; read it again."""


class Filing:
    """The filing of one source's next revision, on top of its revision ``base`` (0 for none)."""

    def __init__(self, ledger: Ledger, place: Place, base: int) -> None:
        self._ledger = ledger
        self._place = place
        self._base = base
        self._members: list[_Member] = []
        self._seen: dict[bytes, int] = {}

    def stage(self, cx: Connection, items: Sequence[NewDrawer], version_by: str) -> None:
        """Put drawers into the ledger, invisible until ``complete``; ``version_by`` is who files them."""
        source = ensure_source(cx, self._place)
        now = self._ledger.clock()
        rows = [self._row(item, source, now, version_by) for item in items]
        known = _rids(cx, [row["id"] for row in rows])
        fresh = [row for row in rows if row["id"] not in known]
        rid = (cx.execute(select(func.max(drawers.c.rid))).scalar() or 0) + 1
        for row in fresh:
            row["rid"] = known[row["id"]] = rid
            rid += 1
        if fresh:
            cx.execute(insert(drawers), fresh)
        for item, row in zip(items, rows, strict=True):
            chunk = item.chunk
            self._members.append(
                _Member(known[row["id"]], chunk.start, chunk.end, chunk.first_line, chunk.last_line)
            )

    def overtaken(self, cx: Connection) -> bool:
        """Whether another process completed a revision since ``base``."""
        known = find_source(cx, self._place.key)
        return (known.revision if known is not None else 0) != self._base

    def complete(self, cx: Connection, version: Version) -> Filed:
        """Make the staged drawers the source's current revision, in this transaction.

        Raises OvertakenError when the source is not at the revision that this one was to follow.
        """
        if self.overtaken(cx):
            raise OvertakenError(f"{self._place.path} was filed by another process at the same time")
        source = ensure_source(cx, self._place)
        number = self._base + 1
        now = self._ledger.clock()
        current = {
            member.drawer: member
            for member in cx.execute(
                select(membership).where(membership.c.source == source, membership.c.to_revision.is_(None))
            )
        }
        begin = [
            (ordinal, member)
            for ordinal, member in enumerate(self._members)
            if not _same(current.get(member.rid), ordinal, member)
        ]
        staying = {member.rid for member in self._members}
        begun = {member.rid for _, member in begin}
        ended = [rid for rid in current if rid not in staying]
        _close(cx, source, number, [*ended, *(rid for rid in current if rid in begun)])
        _open(cx, source, number, begin)
        arrived = [rid for rid in dict.fromkeys(m.rid for _, m in begin) if rid not in current]
        new = _begin_drawers(cx, arrived)
        end_drawers(cx, ended, now)
        cx.execute(insert(revisions), _revision_row(source, number, version, now))
        cx.execute(
            update(sources)
            .where(sources.c.id == source)
            .values(
                revision=number,
                signature=version.signature,
                gone_at=None,
                path=self._place.path,
                wing=self._place.wing,
                room=self._place.room,
            )
        )
        _gather(cx, source, self._place.wing, self._place.room)
        return Filed(
            "new" if number == 1 else "changed", number, new, len(staying) - new, superseded=len(ended)
        )

    def _row(self, item: NewDrawer, source: int, now: int, added_by: str) -> dict[str, object]:
        content = item.content()
        sha = hashlib.sha256(content).digest()
        occurrence = self._seen.get(sha, 0)
        self._seen[sha] = occurrence + 1
        chunk = item.chunk
        spans = [[s.start, s.end, s.kind, s.tag] for s in chunk.sealed]
        return {
            "id": drawer_id(self._place.key, content, occurrence),
            "seq": None,
            "source": source,
            "wing": self._place.wing,
            "room": self._place.room,
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


def find_source(cx: Connection, key: str) -> Row[tuple[object, ...]] | None:
    """Return the ``sources`` row with this key."""
    return cx.execute(select(sources).where(sources.c.key == key)).first()


def ensure_source(cx: Connection, place: Place) -> int:
    """Return the number of the source, registering it when it is not known."""
    known: int | None = cx.execute(select(sources.c.id).where(sources.c.key == place.key)).scalar()
    if known is not None:
        return known
    result = cx.execute(
        insert(sources).values(
            key=place.key,
            kind=place.kind,
            project=place.project,
            path=place.path,
            title=place.title,
            wing=place.wing,
            room=place.room,
            revision=0,
            signature="",
        )
    )
    return int(result.lastrowid)


def mark_seen(cx: Connection, source: int, *, path: str, wing: str, room: str, signature: str) -> int:
    """Record that a source was met again with the same content; return how many drawers moved with it."""
    values = {"path": path, "wing": wing, "room": room, "signature": signature}
    cx.execute(update(sources).where(sources.c.id == source).values(**values))
    return _gather(cx, source, wing, room)


def _gather(cx: Connection, source: int, wing: str, room: str) -> int:
    """Bring every drawer of a source to its place."""
    elsewhere = (drawers.c.wing != wing) | (drawers.c.room != room)
    query = select(drawers.c.rid).where(drawers.c.source == source, drawers.c.seq.is_not(None), elsewhere)
    rids = [rid for (rid,) in cx.execute(query)]
    touch(cx, rids, wing=wing, room=room)
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
    _close(cx, source, number, rids)
    end_drawers(cx, rids, now)
    version = Version(hashlib.sha256(b"").digest(), 0, "", "", "", now, actor)
    cx.execute(insert(revisions), {**_revision_row(source, number, version, now), "state": "gone"})
    cx.execute(
        update(sources).where(sources.c.id == source).values(revision=number, signature="", gone_at=now)
    )
    return len(rids)


def touch(cx: Connection, rids: Sequence[int], **values: object) -> None:
    """Change drawers and give each a new ``seq``, so that every projection sees it."""
    if not rids:
        return
    first = next_seqs(cx, len(rids))
    cx.execute(
        update(drawers).where(drawers.c.rid == bindparam("_rid")).values(seq=bindparam("_seq"), **values),
        [{"_rid": rid, "_seq": first + n} for n, rid in enumerate(rids)],
    )


def end_drawers(cx: Connection, rids: Iterable[int], now: int) -> None:
    """Mark drawers superseded; forgotten ones stay forgotten."""
    states = _states(cx, list(rids))
    touch(cx, [rid for rid, state in states.items() if state == "current"], state="superseded", ended_at=now)


def _begin_drawers(cx: Connection, rids: Sequence[int]) -> int:
    """Make drawers current; return how many the palace did not hold before."""
    fresh = [
        rid
        for batch in batches(rids)
        for (rid,) in cx.execute(
            select(drawers.c.rid)
            .where(drawers.c.rid.in_(batch), drawers.c.seq.is_(None))
            .order_by(drawers.c.rid)
        )
    ]
    touch(cx, fresh)
    known = set(fresh)
    states = _states(cx, [rid for rid in rids if rid not in known])
    back = [rid for rid, state in states.items() if state == "superseded"]
    touch(cx, back, state="current", ended_at=None)
    return len(fresh)


def _states(cx: Connection, rids: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for batch in batches(rids):
        query = select(drawers.c.rid, drawers.c.state).where(drawers.c.rid.in_(batch))
        found.update((rid, state) for rid, state in cx.execute(query))
    return {rid: found[rid] for rid in rids}


def _rids(cx: Connection, ids: Sequence[object]) -> dict[object, int]:
    found: dict[object, int] = {}
    for batch in batches(ids):
        query = select(drawers.c.id, drawers.c.rid).where(drawers.c.id.in_(batch))
        found.update((id_, rid) for id_, rid in cx.execute(query))
    return found


def batches(items: Sequence[T], size: int = _IN_LIMIT) -> Iterable[Sequence[T]]:
    """Cut a sequence into pieces that fit one SQL statement."""
    return (items[i : i + size] for i in range(0, len(items), size))


def _same(row: Row[tuple[object, ...]] | None, ordinal: int, member: _Member) -> bool:
    return row is not None and (row.ordinal, row.start, row.end, row.first_line, row.last_line) == (
        ordinal,
        member.start,
        member.end,
        member.first_line,
        member.last_line,
    )


def _close(cx: Connection, source: int, number: int, rids: Sequence[int]) -> None:
    if rids:
        cx.execute(
            update(membership)
            .where(
                membership.c.source == source,
                membership.c.drawer == bindparam("_rid"),
                membership.c.to_revision.is_(None),
            )
            .values(to_revision=number),
            [{"_rid": rid} for rid in rids],
        )


def _open(cx: Connection, source: int, number: int, begin: Sequence[tuple[int, _Member]]) -> None:
    if begin:
        cx.execute(
            insert(membership),
            [
                {
                    "source": source,
                    "from_revision": number,
                    "ordinal": ordinal,
                    "to_revision": None,
                    "drawer": member.rid,
                    "start": member.start,
                    "end": member.end,
                    "first_line": member.first_line,
                    "last_line": member.last_line,
                }
                for ordinal, member in begin
            ],
        )


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
