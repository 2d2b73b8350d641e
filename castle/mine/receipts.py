"""Comparing a transcript with what is stored of it: every message it holds, by id and hash."""

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
from castle.store.purged import keyed, salt_of
from castle.store.schema import drawers, sources
from castle.store.session_tables import messages
from castle.store.sessions import COUNTED_ONLY, drawer_key


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many messages a transcript holds, how many of them are stored, and a hash over those.

    Two comparisons with the same ``digest`` found the same messages with the same bytes.
    """

    expected: int = 0
    stored: int = 0
    digest: str = ""


def compare(palace: Palace, paths: Sequence[Path]) -> Comparison:
    """Read transcripts from their beginning, and look each message up by its id and its hash.

    A message counts as stored when the ledger has recorded its bytes and its drawers are there; of one that
    is private or recalled, only its size is recorded.
    """
    wanted: dict[str, set[tuple[str, bytes]]] = {}
    for path in paths:
        with open_container(path) as found:
            for transcript in found:
                if isinstance(transcript, Transcript):
                    for key, message in _messages(transcript):
                        wanted.setdefault(key, set()).add(message)
    held: list[tuple[str, str, bytes]] = []
    with palace.ledger.read() as cx:
        for key, expected in wanted.items():
            stored, salt = _stored(cx, key), salt_of(cx)
            held += [
                (key, id_, digest)
                for id_, digest in expected
                if (id_, digest) in stored or (salt is not None and (id_, keyed(salt, digest)) in stored)
            ]
    digest = hashlib.sha256()
    for key, id_, sha256 in sorted(held):
        digest.update(f"{key}\0{id_}\0".encode() + sha256)
    return Comparison(sum(map(len, wanted.values())), len(held), digest.hexdigest()[:32] if held else "")


def _messages(transcript: Transcript) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Yield the session, the id and the hash of every message of a transcript."""
    for event in transcript.read():
        if isinstance(event, Message):
            content = exact_bytes(event.text, escaped=event.escaped)
            if event.kind in COUNTED_ONLY and content and not event.attachments:
                content = str(len(content)).encode("ascii")
            yield session_key(transcript, event.session), (legal(event.id), hashlib.sha256(content).digest())


def _stored(cx: Connection, key: str) -> set[tuple[str, bytes]]:
    """Return the ids and hashes of a session's messages whose words are there."""
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
