"""Sessions in the ledger: filing messages once, however often and wherever they are met again.

A session only grows: a message that a later export no longer has stays. A message that comes again under its
id with the same bytes is the same message; one whose text went on from what was filed replaces it; one with
another text altogether is filed beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from castle.store.filing import Filing, NewDrawer, Place, Version, ensure_source, find_source
from castle.store.ledger import Ledger, batches, to_json
from castle.store.purged import STUB, keyed, salt_of
from castle.store.schema import drawers, membership, sources
from castle.store.session_tables import attachments, blobs, messages, readings, sessions

KIND = "session"
NORMALIZER = "session/1"
COUNTED_ONLY = ("private", "recalled")
"""Kinds of messages that are counted and never stored."""

_VERSIONED = re.compile(r"(?s)(.*)~([0-9]+)")


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file of a message; ``data`` is None when the export only refers to it."""

    name: str
    media_type: str
    ref: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One slice of a transcript and the drawers made of it; ``content`` is its exact bytes.

    ``drawers`` is empty for what is counted and not stored; only the size of ``content`` is kept then.
    """

    id: str
    whole: str
    parent: str
    role: str
    kind: str
    content: bytes
    drawers: Sequence[NewDrawer]
    speaker: str = ""
    tool: str = ""
    thread: str = ""
    said_at: int | None = None
    shown: bool = True
    attachments: Sequence[NewAttachment] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is known about a session; empty is unknown and leaves what the ledger knows."""

    session: str
    format: str
    title: str = ""
    cwd: str = ""
    git_branch: str = ""
    parent: str = ""
    started_at: int | None = None


@dataclass(frozen=True, slots=True)
class Grown:
    """What filing changed: messages and drawers that are new, messages known before, drawers superseded.

    ``purged`` counts the stretches of text that were left out because they had been purged.
    """

    first: bool
    messages: int
    known: int
    drawers: int
    superseded: int
    purged: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a file was read: ``offset`` in bytes, ``edge`` the hash of what stands before it."""

    format: str
    signature: str
    offset: int
    edge: bytes
    state: str


def grow(
    cx: Connection, ledger: Ledger, place: Place, facts: SessionFacts, items: Sequence[NewMessage], agent: str
) -> Grown | None:
    """File the messages that the session does not hold yet, in this transaction.

    Returns None for a session of which nothing but its facts is known: there is nothing to file.
    """
    known = find_source(cx, place.key)
    if known is None and not items:
        return None
    source = ensure_source(cx, place)
    fresh, retired, hidden = _unknown(cx, source, items)
    base = known.revision if known is not None else 0
    filing = Filing(ledger, place, base, append=True)
    left_out = [drawer.chunk.text for item in hidden for drawer in item.drawers]
    filing.leave_out(left_out)
    new = [
        replace(drawer, message_id=one.drawer_key)
        for one in fresh
        if one.current
        for drawer in one.item.drawers
    ]
    filing.stage(cx, new, agent)
    ended = filing.retire(cx, _drawers_of(cx, source, retired)) if retired else 0
    now = ledger.clock()
    said = [one.item.said_at for one in fresh if one.item.said_at is not None]
    version = Version(b"", 0, "", NORMALIZER, "utf-8", min(said, default=now), agent)
    filed = filing.complete(cx, version)
    _record(cx, source, fresh)
    _remember(cx, source, facts, said)
    if hidden or filed.purged:
        _drop_title(cx, source, filing)
    gaps = len(hidden) + len(filed.purged)
    return Grown(base == 0, len(fresh), len(items) - len(fresh), filed.new, ended, gaps)


def last_turn(cx: Connection, key: str) -> tuple[str, str]:
    """Return the room a session's last drawer stands in, and the id of its last drawer that a user wrote."""
    place = (
        select(drawers.c.room, drawers.c.id)
        .select_from(drawers.join(sources, sources.c.id == drawers.c.source))
        .where(sources.c.key == key)
        .order_by(drawers.c.rid.desc())
        .limit(1)
    )
    last = cx.execute(place).first()
    user = cx.execute(place.where(drawers.c.role == "user", drawers.c.kind == "message")).first()
    return (last.room if last else "", user.id if user else "")


def reading_of(cx: Connection, address: str) -> Reading | None:
    """Return how far the file at an address was read."""
    row = cx.execute(select(readings).where(readings.c.address == address)).first()
    return Reading(row.format, row.signature, row.offset, row.edge, row.state) if row is not None else None


def note_reading(cx: Connection, address: str, reading: Reading) -> None:
    """Record how far the file at an address was read."""
    values = {
        "format": reading.format,
        "signature": reading.signature,
        "offset": reading.offset,
        "edge": reading.edge,
        "state": reading.state,
    }
    known = cx.execute(select(readings.c.address).where(readings.c.address == address)).first()
    if known is None:
        cx.execute(insert(readings).values(address=address, **values))
    else:
        cx.execute(update(readings).where(readings.c.address == address).values(**values))


def forget_readings(cx: Connection, addresses: Iterable[str]) -> None:
    """Have the files at some addresses read from their start the next time."""
    for address in addresses:
        cx.execute(delete(readings).where(readings.c.address == address))


def withdraw(cx: Connection, key: str, message: str) -> None:
    """Mark a message of a session, and all after it, as no longer shown."""
    source = select(sources.c.id).where(sources.c.key == key).scalar_subquery()
    start = (
        select(func.min(messages.c.position))
        .where(messages.c.source == source, messages.c.whole == message)
        .scalar_subquery()
    )
    cx.execute(
        update(messages).where(messages.c.source == source, messages.c.position >= start).values(shown=False)
    )


def entitle(cx: Connection, message: str, title: str) -> None:
    """Give a title to the sessions that hold a message and have none."""
    holders = [
        source
        for (source,) in cx.execute(select(messages.c.source).where(messages.c.whole == message).distinct())
    ]
    for source in holders:
        if _withholds(cx, source):
            continue
        untitled = (sessions.c.source == source) & (sessions.c.title == "")
        if cx.execute(update(sessions).where(untitled).values(title=title)).rowcount:
            cx.execute(update(sources).where(sources.c.id == source).values(title=title))


@dataclass(slots=True)
class _Fresh:
    """A message to record; ``current`` is false for one that another of the same batch goes on from."""

    item: NewMessage
    version: int
    current: bool = True

    @property
    def drawer_key(self) -> str:
        """What its drawers carry as ``message_id``."""
        return drawer_key(self.item.id, self.version)


def drawer_key(id_: str, version: int) -> str:
    """Return the ``message_id`` of the drawers of one version of a message."""
    plain = version == 1 and _VERSIONED.fullmatch(id_) is None
    return id_ if plain else f"{id_}~{version}"


def message_of(key: str) -> tuple[str, int]:
    """Return the id and the version that a ``drawer_key`` stands for."""
    match = _VERSIONED.fullmatch(key)
    return (match[1], int(match[2])) if match else (key, 1)


@dataclass(slots=True)
class _Filed:
    """A version of a message as far as comparing needs it; ``fresh`` is None for one in the ledger."""

    version: int
    sha256: bytes
    size: int
    current: bool
    fresh: _Fresh | None = None
    salt: bytes | None = None

    def is_of(self, digest: bytes) -> bool:
        """Whether it has this hash; that of a message of which something was purged is keyed."""
        if self.sha256 == digest:
            return True
        return self.salt is not None and self.sha256 == keyed(self.salt, digest)

    def continued_by(self, content: bytes) -> bool:
        """Whether a text is this one with more after it."""
        if not self.current or not 0 < self.size < len(content):
            return False
        return self.is_of(hashlib.sha256(content[: self.size]).digest())


def _unknown(
    cx: Connection, source: int, items: Sequence[NewMessage]
) -> tuple[list[_Fresh], list[tuple[str, int]], list[NewMessage]]:
    """Return the messages to record, and the versions in the ledger that one of them goes on from.

    The third are those of the others of which something was purged.
    """
    filed: dict[str, list[_Filed]] = {}
    salt = salt_of(cx)
    hidden: list[NewMessage] = []
    for batch in batches(list(dict.fromkeys(item.id for item in items))):
        query = select(messages).where(messages.c.source == source, messages.c.id.in_(batch))
        for row in cx.execute(query.order_by(messages.c.version)):
            known = _Filed(row.version, row.sha256, row.size, row.current, salt=salt)
            filed.setdefault(row.id, []).append(known)
    fresh: list[_Fresh] = []
    retired: list[tuple[str, int]] = []
    for item in items:
        before = filed.setdefault(item.id, [])
        digest = _digest(item)
        if any(known.is_of(digest) for known in before):
            if all(digest != known.sha256 for known in before):
                hidden.append(item)
            continue
        for known in before:
            if known.continued_by(item.content):
                known.current = False
                if known.fresh is None:
                    retired.append((item.id, known.version))
                else:
                    known.fresh.current = False
        new = _Fresh(item, len(before) + 1)
        before.append(_Filed(new.version, digest, len(item.content), True, new))
        fresh.append(new)
    return fresh, retired, hidden


def _digest(item: NewMessage) -> bytes:
    """Return the hash of a message; of what is not stored, only the size counts."""
    stored = item.drawers or item.attachments or not item.content
    return hashlib.sha256(item.content if stored else str(len(item.content)).encode("ascii")).digest()


def _drawers_of(cx: Connection, source: int, retired: Sequence[tuple[str, int]]) -> list[int]:
    """Return the current drawers of message versions, and mark those versions as replaced."""
    found: list[int] = []
    for id_, version in retired:
        row = (messages.c.source == source) & (messages.c.id == id_) & (messages.c.version == version)
        cx.execute(update(messages).where(row).values(current=False))
        query = (
            select(drawers.c.rid)
            .select_from(drawers.join(membership, membership.c.drawer == drawers.c.rid))
            .where(
                drawers.c.source == source,
                drawers.c.message_id == drawer_key(id_, version),
                membership.c.to_revision.is_(None),
            )
        )
        found += [rid for (rid,) in cx.execute(query)]
    return found


def _withholds(cx: Connection, source: int) -> bool:
    """Whether something of a session was purged: a title that comes later may quote it."""
    if salt_of(cx) is None:
        return False
    stub = select(drawers.c.rid).where(drawers.c.source == source, STUB).limit(1)
    return cx.execute(stub).first() is not None


def _drop_title(cx: Connection, source: int, filing: Filing) -> None:
    """Let go of a title that quotes what was left out."""
    row = cx.execute(select(sessions.c.title, sessions.c.session).where(sessions.c.source == source)).one()
    if filing.quotes(row.title):
        cx.execute(update(sessions).where(sessions.c.source == source).values(title=""))
        cx.execute(update(sources).where(sources.c.id == source).values(title=row.session))


def _record(cx: Connection, source: int, fresh: Sequence[_Fresh]) -> None:
    if not fresh:
        return
    highest = select(func.max(messages.c.position)).where(messages.c.source == source)
    first = (cx.execute(highest).scalar() or 0) + 1
    rows = [
        {
            "source": source,
            "id": one.item.id,
            "version": one.version,
            "position": first + number,
            "whole": one.item.whole,
            "parent": one.item.parent,
            "role": one.item.role,
            "kind": one.item.kind,
            "speaker": one.item.speaker,
            "tool": one.item.tool,
            "thread": one.item.thread,
            "said_at": one.item.said_at,
            "shown": one.item.shown,
            "current": one.current,
            "sha256": _digest(one.item),
            "size": len(one.item.content),
            "metadata": to_json(dict(one.item.metadata)) if one.item.metadata else None,
        }
        for number, one in enumerate(fresh)
    ]
    cx.execute(insert(messages), rows)
    for one in fresh:
        for ordinal, attachment in enumerate(one.item.attachments):
            _attach(cx, source, one.item.id, ordinal, attachment)


def _attach(cx: Connection, source: int, message: str, ordinal: int, attachment: NewAttachment) -> None:
    digest = None
    if attachment.data is not None:
        digest = hashlib.sha256(attachment.data).digest()
        cx.execute(
            insert(blobs)
            .prefix_with("OR IGNORE")
            .values(sha256=digest, size=len(attachment.data), data=attachment.data)
        )
    cx.execute(
        insert(attachments)
        .prefix_with("OR REPLACE")
        .values(
            source=source,
            message=message,
            ordinal=ordinal,
            name=attachment.name,
            media_type=attachment.media_type,
            ref=attachment.ref,
            blob=digest,
        )
    )


def _remember(cx: Connection, source: int, facts: SessionFacts, said: Sequence[int]) -> None:
    """Keep what is known about the session, the newest word counting, and its span of time."""
    row = cx.execute(select(sessions).where(sessions.c.source == source)).first()
    if row is not None and not row.title and _withholds(cx, source):
        facts = replace(facts, title="")
    values: dict[str, Any] = {
        name: getattr(facts, name)
        for name in ("title", "cwd", "git_branch", "parent")
        if getattr(facts, name) or row is None
    }
    starts = [t for t in (facts.started_at, row.started_at if row else None, min(said, default=None)) if t]
    ends = [t for t in (row.ended_at if row else None, max(said, default=None)) if t]
    values |= {"started_at": min(starts, default=None), "ended_at": max(ends, default=None)}
    if row is None:
        cx.execute(
            insert(sessions).values(source=source, session=facts.session, format=facts.format, **values)
        )
    else:
        cx.execute(update(sessions).where(sessions.c.source == source).values(**values))
    if values.get("title"):
        cx.execute(update(sources).where(sources.c.id == source).values(title=values["title"]))
