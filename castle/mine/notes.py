"""Notes: texts that agents and people file one by one, each a source of its own.

A note is cut into drawers as every source is; joined, they are the note byte for byte. A change is the note's
next revision, so that what it said before stays in the history. What comes from elsewhere is changed there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from sqlalchemy import Connection, and_, select

from castle.config import check_name
from castle.errors import NotFoundError, PalaceBusyError, PalaceError, RefusedError, UsageError
from castle.mine.formats.base import exact_bytes
from castle.mine.halls import hall_for
from castle.mine.turns import legal
from castle.records import Address, Drawer
from castle.store.filing import Filing, NewDrawer, Place, Version, find_source, mark_seen
from castle.store.palace import Palace
from castle.store.places import present_name
from castle.store.purge_guard import refuse
from castle.store.purged import check_not_purged, is_stub
from castle.store.reading import full_id, members, named_source
from castle.store.schema import drawers, revisions, sources
from castle.text.chunk import chunks
from castle.text.served import mask_secrets

KIND = "note"
NORMALIZER = "note/1"
MOST_CHARACTERS = 10_000_000
MOST_NAME = 300
TRIES = 5

_DIGEST = re.compile("[0-9a-f]{64}")

Halls = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Added:
    """A note as it is filed: the first of its drawers, all of them in order, and the hash of what they hold.

    ``reason`` is "already_exists" when the same text stood in the same place before; nothing was filed then.
    """

    id: str
    ids: tuple[str, ...]
    wing: str
    room: str
    sha256: str
    reason: Literal["", "already_exists"] = ""


@dataclass(frozen=True, slots=True)
class Updated:
    """A note after a change: ``id`` holds what ``previous`` held before, ``ids`` all that was given.

    ``sha256`` is that of the whole note. ``noop`` is true when there was nothing to change. ``notes`` say
    what may not be meant.
    """

    id: str
    ids: tuple[str, ...]
    previous: str
    wing: str
    room: str
    revision: int
    sha256: str
    noop: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Note:
    """A note as the ledger holds it, with its drawers in order."""

    source: int
    place: Place
    revision: int
    parts: tuple[tuple[Drawer, Address], ...]

    @property
    def content(self) -> bytes:
        return b"".join(part.text.encode("utf-8") if part.raw is None else part.raw for part, _ in self.parts)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def current(self) -> bool:
        return bool(self.parts) and all(part.state == "current" for part, _ in self.parts)

    def within(self, start: int, end: int) -> tuple[str, ...]:
        """Return the drawers that hold the characters from ``start`` to ``end``."""
        return tuple(part.id for part, place in self.parts if place.start < end and place.end > start)


def add(
    palace: Palace,
    text: str,
    *,
    wing: str,
    room: str,
    source_file: str,
    added_by: str,
    halls: Halls,
    authored_at: int | None = None,
    also: Callable[[Connection, Added], None] | None = None,
) -> Added:
    """File a text word for word and return what the ledger holds of it, read back before it is committed.

    ``authored_at`` is when it was written, in microseconds, for what is older than its filing.
    ``also`` writes what belongs to it in the same transaction: both come, or neither. The indexes are not
    brought up to date here. Raises UsageError for a blank or endless text, ConfigError
    for a wing or room that cannot be one.
    """
    content = _checked(text)
    digest = hashlib.sha256(content).hexdigest()
    given, room = check_name("wing", wing), check_name("room", room)
    by = _named("added_by", added_by)
    origin = mask_secrets(_named("source_file", source_file), palace.salt)
    items = _cut(palace, text, {"source_file": origin} if origin else {}, halls)
    if authored_at is not None:
        items = [replace(item, authored_at=authored_at) for item in items]
    with palace.ledger.write() as cx:
        refuse(cx, text)
        present = present_name(cx, given)
        known = _same(cx, present, room, digest, items[0])
        if known is not None:
            found = _added(known, "already_exists")
        else:
            key = _free_key(cx, present, room, digest)
            path = f"{origin} ({key})" if origin else key
            place = Place(key, KIND, path, origin or KIND, present, room)
            found = _added(_file(cx, palace, place, 0, items, content, by))
        if also is not None:
            also(cx, found)
        return found


def update(
    palace: Palace,
    id_: str,
    text: str | None = None,
    *,
    wing: str | None,
    room: str | None,
    expected_sha256: str | None,
    added_by: str,
    halls: Halls,
) -> Updated:
    """Give a note another text, as its next revision, or another place.

    The text takes the place of the drawer's. Of a note of several drawers ``expected_sha256`` says what is
    replaced: the hash of the drawer or that of the whole note. Given, it must be that of what is filed.
    Raises RefusedError when it is not, when the drawer is not current, and for what is no note; UsageError
    when it is not given and needed.
    """
    if text is not None:
        _checked(text)
    by = _named("added_by", added_by)
    wanted_wing = check_name("wing", wing) if wing is not None else None
    wanted_room = check_name("room", room) if room is not None else None
    expected = _digest(expected_sha256)
    for _ in range(TRIES):
        with palace.ledger.read() as cx:
            note, drawer, where = _open(cx, id_)
        start, end = _stretch(note, drawer, where, expected, text is not None)
        old = note.content.decode("utf-8", "surrogatepass")
        whole = old if text is None else old[:start] + text + old[end:]
        items = _cut(palace, whole, note.parts[0][0].metadata, halls) if whole != old else []
        with palace.ledger.write() as cx:
            again, _, _ = _open(cx, id_)
            if again != note:
                continue
            refuse(cx, whole if items else "")
            present = present_name(cx, wanted_wing) if wanted_wing is not None else note.place.wing
            place = _moved(note.place, present, wanted_room or note.place.room)
            if items:
                content = exact_bytes(whole)
                now = _file(cx, palace, place, note.revision, items, content, by)
            elif place != note.place:
                values = {"path": place.path, "wing": place.wing, "room": place.room}
                mark_seen(cx, note.source, signature="", **values)
                now = _read(cx, place.key)
            else:
                now = note
            shown = now.within(start, start + len(text)) if text is not None else (drawer.id,)
        return Updated(
            shown[0],
            shown,
            drawer.id,
            now.place.wing,
            now.place.room,
            now.revision,
            now.sha256,
            noop=now is note,
            notes=_masks(note, text or ""),
        )
    raise PalaceBusyError(f"drawer {id_} kept changing while it was read: run the command again")


def _checked(text: str) -> bytes:
    """Return the exact bytes of a text that can be a note."""
    if not text.strip():
        raise UsageError("the text is empty: give the exact words that are to be kept")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"the text has {len(text):,} characters, {MOST_CHARACTERS:,} are the most: write it to a file "
            "and `castle mine FILE`"
        )
    return exact_bytes(text)


def _named(what: str, text: str) -> str:
    """Return a name as one legal line; raises UsageError for one that is too long."""
    line = " ".join(legal(text).split())
    if len(line) > MOST_NAME:
        raise UsageError(f"{what} has {len(line)} characters, {MOST_NAME} are the most")
    return line


def _digest(given: str | None) -> str | None:
    if given is None:
        return None
    digest = given.strip().lower()
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"expected_sha256 {given[:80]!r} is no SHA-256 in hex (64 characters)")
    return digest


def _cut(palace: Palace, text: str, metadata: Mapping[str, object], halls: Halls) -> list[NewDrawer]:
    """Cut a text into exact slices; what no database takes is shown otherwise and kept as bytes."""
    shown = legal(text)
    hall = hall_for(shown, halls)
    now = palace.ledger.clock()
    items = []
    for chunk in chunks([shown], name="note.md", salt=palace.salt):
        exact = exact_bytes(text[chunk.start : chunk.end])
        raw = None if chunk.text.encode("utf-8") == exact else exact
        context = " › ".join(chunk.headings)
        items.append(NewDrawer(chunk, raw, hall, KIND, context, now, metadata=metadata))
    return items


def _file(
    cx: Connection,
    palace: Palace,
    place: Place,
    base: int,
    items: Sequence[NewDrawer],
    content: bytes,
    added_by: str,
) -> _Note:
    """File a revision and return it as it is read again; raises PalaceError when that is anything else."""
    digest = hashlib.sha256(content)
    version = Version(digest.digest(), len(content), "", NORMALIZER, "utf-8", palace.ledger.clock(), added_by)
    filing = Filing(palace.ledger, place, base)
    filing.stage(cx, items, added_by)
    filing.complete(cx, version)
    note = _read(cx, place.key)
    if note.sha256 != digest.hexdigest():
        raise PalaceError(f"{place.path}: the ledger did not give back what was filed; nothing was changed")
    return note


def _read(cx: Connection, key: str) -> _Note:
    row = cx.execute(select(sources).where(sources.c.key == key)).one()
    place = Place(row.key, row.kind, row.path, row.title, row.wing, row.room)
    return _Note(row.id, place, row.revision, tuple(_left(members(cx, key))))


def _left(parts: Iterable[tuple[Drawer, Address]]) -> Iterator[tuple[Drawer, Address]]:
    """Yield the parts of a note that were not purged, each where it stands in what is left."""
    gone = 0
    for part, where in parts:
        if is_stub(part):
            gone += where.end - where.start
        else:
            yield part, replace(where, start=where.start - gone, end=where.end - gone)


def _added(note: _Note, reason: Literal["", "already_exists"] = "") -> Added:
    ids = tuple(part.id for part, _ in note.parts)
    return Added(ids[0], ids, note.place.wing, note.place.room, note.sha256, reason)


def _same(cx: Connection, wing: str, room: str, digest: str, first: NewDrawer) -> _Note | None:
    """Return the note in that place that holds just this text, None when there is none or it is forgotten."""
    latest = and_(revisions.c.source == sources.c.id, revisions.c.number == sources.c.revision)
    query = (
        select(sources.c.key)
        .select_from(drawers.join(sources, drawers.c.source == sources.c.id).join(revisions, latest))
        .where(
            drawers.c.sha256 == hashlib.sha256(first.content()).digest(),
            drawers.c.state == "current",
            drawers.c.wing == wing,
            drawers.c.room == room,
            sources.c.kind == KIND,
            revisions.c.sha256 == bytes.fromhex(digest),
        )
        .order_by(sources.c.id)
    )
    found = (_read(cx, key) for key in dict.fromkeys(key for (key,) in cx.execute(query)))
    return next((note for note in found if note.current), None)


def _free_key(cx: Connection, wing: str, room: str, digest: str) -> str:
    """Return the key of a new note; a note that was changed or forgotten since keeps its own."""
    for number in count():
        parts = (wing, room, digest, str(number))
        named = "".join(f"{len(part)}:{part}" for part in parts)
        key = f"note:{hashlib.sha256(named.encode('utf-8')).hexdigest()[:24]}"
        if find_source(cx, key) is None:
            return key
    raise AssertionError("numbers do not end")


def _open(cx: Connection, id_: str) -> tuple[_Note, Drawer, Address]:
    """Return the note that a drawer belongs to, the drawer, and where in it it stands."""
    full = full_id(cx, id_)
    check_not_purged(cx, full)
    source = named_source(cx, full)
    if source.kind != KIND:
        raise RefusedError(f"drawer {full} {_elsewhere(source.kind, source.path)}")
    note = _read(cx, source.key)
    for part, where in note.parts:
        if part.id == full:
            if part.state == "forgotten":
                raise RefusedError(f"drawer {full} is forgotten: `castle restore {full}` brings it back")
            return note, part, where
    if not note.parts:
        raise NotFoundError(f"drawer {full} is of a note that holds nothing any more")
    last = note.parts[0][0].id
    raise RefusedError(
        f"drawer {full} was superseded: the note is now at revision {note.revision}, which begins with "
        f"drawer {last}: read that one and change it"
    )


def _elsewhere(kind: str, path: str) -> str:
    """Say where a drawer that is no note comes from, and how it is changed."""
    if kind == "diary":
        return "is of a diary, whose entries are never changed: write another one"
    if kind == "session":
        return f"is of the session {path}, which stays as it was said: add a note beside it"
    return (
        f"comes from {path}, which decides on its text, wing and room: change that file and file it again; "
        "only notes are changed here"
    )


def _stretch(
    note: _Note, drawer: Drawer, where: Address, expected: str | None, replacing: bool
) -> tuple[int, int]:
    """Return which characters are to be replaced; raises RefusedError for what is not as expected."""
    whole = note.sha256
    if expected is not None and expected not in (drawer.sha256, whole):
        raise RefusedError(
            f"drawer {drawer.id} holds {drawer.sha256}, not {expected}: it was changed since; read it again"
        )
    if expected == whole and expected != drawer.sha256:
        return 0, note.parts[-1][1].end
    if replacing and len(note.parts) > 1:
        if expected is None:
            raise UsageError(
                f"drawer {drawer.id} is one of {len(note.parts)} of its note: say what is replaced with "
                f"expected_sha256, {drawer.sha256} for this drawer or {whole} for the whole note"
            )
        if not note.current:
            raise RefusedError(
                f"drawers beside {drawer.id} in its note are forgotten: `castle restore --source "
                f"{note.place.key}` brings them back, or replace the whole note"
            )
    return where.start, where.end


def _moved(place: Place, wing: str, room: str) -> Place:
    return Place(place.key, place.kind, place.path, place.title, wing, room)


def _masks(note: _Note, text: str) -> tuple[str, ...]:
    """Say when a text holds a mask in the place of a secret of the note."""
    masks = {span.mask for part, _ in note.parts for span in part.sealed}
    return tuple(
        f"{mask} was filed as it stands here; the secret itself is in revision {note.revision}"
        for mask in sorted(masks)
        if mask in text
    )
