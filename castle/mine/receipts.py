"""Comparing a transcript with what is stored of it: every entry it holds, by id and hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from castle.mine.convos import session_key
from castle.mine.formats import Message, Transcript, exact_bytes, open_container
from castle.mine.turns import legal
from castle.store.palace import Palace
from castle.store.projects import path_text
from castle.store.purged import keyed, salt_of
from castle.store.schema import drawers, sources
from castle.store.session_tables import messages
from castle.store.sessions import COUNTED_ONLY, drawer_key, forget_readings


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many entries a transcript holds, how many of them are stored, and a hash over all that is known.

    An entry is what a session is filed as: what somebody said, a call of a tool, thinking; a text with a
    private block in it is several. Of the ``withheld`` ones, private or told by Castle itself, only the size
    is recorded. Two comparisons with the same ``digest`` found the same entries with the same bytes.
    """

    entries: int = 0
    stored: int = 0
    withheld: int = 0
    digest: str = ""

    @property
    def lacking(self) -> int:
        """How many entries are neither stored nor withheld."""
        return self.entries - self.stored - self.withheld


def compare(palace: Palace, paths: Sequence[Path]) -> Comparison:
    """Read transcripts from their beginning, and look each entry up by its id and its hash.

    An entry counts as stored when the ledger has recorded its bytes and its drawers are there.
    """
    wanted: dict[str, dict[tuple[str, bytes], bool]] = {}
    for path in paths:
        with open_container(path) as found:
            for transcript in found:
                if isinstance(transcript, Transcript):
                    for key, entry, private in _entries(transcript):
                        wanted.setdefault(key, {})[entry] = private
    held: list[tuple[str, str, bytes]] = []
    withheld = 0
    with palace.ledger.read() as cx:
        for key, entries in wanted.items():
            stored, salt = _stored(cx, key), salt_of(cx)
            for (id_, sha256), private in entries.items():
                if (id_, sha256) in stored or (salt is not None and (id_, keyed(salt, sha256)) in stored):
                    held.append((key, id_, sha256))
                    withheld += private
    digest = hashlib.sha256()
    for key, id_, sha256 in sorted(held):
        digest.update(f"{key}\0{id_}\0".encode() + sha256)
    count = sum(map(len, wanted.values()))
    return Comparison(count, len(held) - withheld, withheld, digest.hexdigest()[:32] if held else "")


def read_again(palace: Palace, paths: Sequence[Path]) -> None:
    """Have transcripts read from their beginning the next time they are filed."""
    addresses = []
    for path in paths:
        with open_container(path.resolve()) as found:
            addresses += [path_text(one.address) for one in found if isinstance(one, Transcript)]
    with palace.ledger.write() as cx:
        forget_readings(cx, addresses)


def _entries(transcript: Transcript) -> Iterator[tuple[str, tuple[str, bytes], bool]]:
    """Yield the session of each entry of a transcript, its id and hash, and whether it is withheld."""
    for event in transcript.read():
        if isinstance(event, Message):
            content = exact_bytes(event.text, escaped=event.escaped)
            private = event.kind in COUNTED_ONLY
            if private and content and not event.attachments:
                content = str(len(content)).encode("ascii")
            entry = legal(event.id), hashlib.sha256(content).digest()
            yield session_key(transcript, event.session), entry, private


def _stored(cx: Connection, key: str) -> set[tuple[str, bytes]]:
    """Return the ids and hashes of a session's entries whose words are there, or are withheld."""
    source = select(sources.c.id).where(sources.c.key == key).scalar_subquery()
    held = select(drawers.c.message_id).distinct()
    there = set(cx.execute(held.where(drawers.c.source == source, drawers.c.seq.is_not(None))).scalars())
    rows = cx.execute(
        select(
            messages.c.id,
            messages.c.version,
            messages.c.kind,
            messages.c.size,
            messages.c.current,
            messages.c.sha256,
        ).where(messages.c.source == source)
    )
    return {
        (row.id, row.sha256)
        for row in rows
        if row.kind in COUNTED_ONLY
        or not row.size
        or not row.current  # what it went on to become holds its words
        or drawer_key(row.id, row.version) in there
    }
