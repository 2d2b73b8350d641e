"""Reading what is filed again with today's rules for secrets, and letting go of what quotes those they find.

Works in small steps, each a short transaction, under a lock of its own: what is done when it ends, stays.
Until all is done, what is shown is read with today's rules each time; see ``sealing``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Integer, bindparam, delete, literal, select, tuple_, update

from castle.records import SealedSpan
from castle.store.closet_tables import aaak, closet_drawers, closet_lines
from castle.store.drawer_rows import touch
from castle.store.ledger import batches, get_value, run, set_value, to_json
from castle.store.reviews import forget_reviews
from castle.store.schema import drawers, meta, sources, vectors
from castle.store.sealing import COLUMNS, sealed_of, sealed_spans, shown
from castle.store.session_tables import sessions
from castle.store.spaces import discard_others, embedders
from castle.text import secrets
from castle.text.served import mask_secrets, served_text

if TYPE_CHECKING:
    from castle.store.palace import Palace

Progress = Callable[[int, int], None]
"""Called with the number of drawers read and the number there are to read."""

LOCK = "secrets"
FOUND_KEY = "secrets_in_indexes"
"""Row of ``meta``, there while the files of the indexes may still hold a secret that was found later."""

WAKE_UP = "wakeup.json"
BATCH = 500
HASTY_BATCH = 100
PATIENCE = 0.2
MASK = "«secret»"
_PIECE = 8
"""Characters in a row by which a text quotes a secret."""


@dataclass(frozen=True, slots=True)
class Redetected:
    """What a run did: drawers read, those in which something new was found, and those that are left."""

    read: int
    changed: int
    left: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """A drawer read again: its spans now, and the texts among them that were not sealed before."""

    row: Any
    sealed: tuple[SealedSpan, ...]
    new: tuple[str, ...]


@dataclass(slots=True)
class _Step:
    """What one transaction has to write; ``last`` is the last drawer that was looked at."""

    readings: list[_Reading] = field(default_factory=list)
    contexts: dict[int, str] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    last: tuple[int, int] | None = None


def left(cx: Connection) -> int:
    """Return how many drawers were read with older rules and not yet again."""
    # Before each search: SQLAlchemy would take longer over it than SQLite.
    query = "SELECT count(*) FROM drawers WHERE detector_version < ? AND seq + 0 IS NOT NULL"
    return int(run(cx, query, (secrets.DETECTOR_VERSION,)).fetchone()[0])


def redetect(
    palace: Palace, *, deadline: float | None = None, progress: Progress | None = None
) -> Redetected:
    """Read drawers of older rules again, all or until ``deadline`` (monotonic seconds).

    Does nothing where the palace cannot be written or another process is at it. Raises PalaceBusyError.
    """
    if palace.ledger.read_only:
        return Redetected(0, 0, 0)
    with palace.ledger.read() as cx:
        total = left(cx)
    lock = palace.lock(LOCK)
    if not total or not lock.try_acquire():
        return Redetected(0, 0, total)
    try:
        return _all(palace, total, deadline, progress)
    finally:
        lock.release()


def purge(palace: Palace) -> bool:
    """Throw away indexes whose files may hold a secret that was found later; return whether it did.

    Waits until every drawer was read again. The caller brings the indexes up to date, from cached vectors.
    """
    with palace.ledger.read() as cx:
        if get_value(cx, FOUND_KEY) is None or left(cx):
            return False
    from castle.models.token_cache import TokenCache
    from castle.store.palace import TOKEN_CACHE

    for name in ("lexicon", "vectors"):
        with palace.exclusively(name):
            (palace.lexicon if name == "lexicon" else palace.vectors).reset()
            if name == "vectors":
                discard_others(palace)
    with suppress(OSError):
        TokenCache(palace.root / TOKEN_CACHE).clear()
    with palace.ledger.write() as cx:
        cx.execute(delete(meta).where(meta.c.key == FOUND_KEY))
    return True


def _all(palace: Palace, total: int, deadline: float | None, progress: Progress | None) -> Redetected:
    # It was rendered with older rules; whoever renders it next uses today's.
    with suppress(OSError):
        (palace.root / WAKE_UP).unlink()
    read = changed = 0
    after = (-1, 0)
    while deadline is None or time.monotonic() < deadline:
        with palace.ledger.read() as cx:
            step = _read(cx, palace.salt, after, BATCH if deadline is None else HASTY_BATCH)
        if step.last is None:
            break
        after = step.last
        # Before it is written that they were read: who is killed in between begins with the same ones.
        forget_reviews(palace, [reading.row.rid for reading in step.readings if reading.new])
        with palace.ledger.write(None if deadline is None else PATIENCE) as cx:
            changed += _write(cx, step)
        read += len(step.readings)
        if progress is not None:
            progress(read, max(read, total))
    with palace.ledger.read() as cx:
        return Redetected(read, changed, left(cx))


def _old() -> Any:
    # Staged drawers belong to whoever files them, and are shown to nobody. "+ 0" keeps the index of all seqs
    # out of it, which would read every drawer.
    return (drawers.c.detector_version < secrets.DETECTOR_VERSION) & (drawers.c.seq + 0).is_not(None)


def _read(cx: Connection, salt: bytes, after: tuple[int, int], limit: int) -> _Step:
    """Read the next drawers, and find everything that quotes what is found in them."""
    order = (drawers.c.detector_version, drawers.c.seq)
    beyond = tuple_(*order) > tuple_(*(literal(number, Integer) for number in after))
    query = select(*COLUMNS, drawers.c.seq, drawers.c.context).where(_old(), beyond).order_by(*order)
    step = _Step()
    found: dict[int, list[str]] = {}
    for row in cx.execute(query.limit(limit)).all():
        step.last = (row.detector_version, row.seq)
        # A row so damaged that its spans cannot be read stays as it is; ``verify`` tells of it.
        with suppress(ValueError, TypeError):
            filed = {(span.start, span.end) for span in sealed_spans(row.sealed)}
            now = sealed_of(cx, row)
            new = tuple(row.text[s.start : s.end] for s in now if (s.start, s.end) not in filed)
            step.readings.append(_Reading(row, now, new))
            found.setdefault(row.source, []).extend(new)
            if (context := mask_secrets(row.context, salt)) != row.context:
                step.contexts[row.rid] = context
    for source, texts in found.items():
        if texts:
            _quoting(cx, step, source, dict.fromkeys(texts))
    return step


def _quoting(cx: Connection, step: _Step, source: int, found: Iterable[str]) -> None:
    """Find the contexts and the title of a source that quote what was found in it."""
    flat = [text for text in (" ".join(secret.split()) for secret in found) if text]
    known: dict[str, str] = {}
    query = select(drawers.c.rid, drawers.c.context)
    for rid, context in cx.execute(query.where(drawers.c.source == source, drawers.c.context != "")):
        context = step.contexts.get(rid, context)
        if context not in known:
            known[context] = _without(context, flat)
        if known[context] != context:
            step.contexts[rid] = known[context]
    for title in cx.execute(select(sessions.c.title).where(sessions.c.source == source)).scalars():
        if (clean := _without(title, flat)) != title:
            step.titles[source] = clean


def _without(text: str, found: Sequence[str]) -> str:
    """Return a text without secrets: a whole one is masked, and a text with a part of one is dropped."""
    for secret in found:
        if _quotes(text, secret):
            text = text.replace(secret, MASK)
            if _quotes(text, secret):
                return ""
    return text


def _quotes(text: str, secret: str) -> bool:
    size = min(_PIECE, len(secret))
    return any(text[at : at + size] in secret for at in range(len(text) - size + 1))


def _write(cx: Connection, step: _Step) -> int:
    """File what was found, and drop what was made of the drawers as they were; return how many changed."""
    touched = {reading.row.rid for reading in step.readings if reading.new} | step.contexts.keys()
    inputs = _inputs(cx, sorted(touched))
    one = update(drawers).where(drawers.c.rid == bindparam("_rid"))
    if step.readings:
        filed = one.values(sealed=bindparam("_sealed"), detector_version=secrets.DETECTOR_VERSION)
        cx.execute(filed, [{"_rid": r.row.rid, "_sealed": _stored(r.sealed)} for r in step.readings])
    if step.contexts:
        rows = [{"_rid": rid, "_context": context} for rid, context in step.contexts.items()]
        cx.execute(one.values(context=bindparam("_context")), rows)
    for source, title in step.titles.items():
        cx.execute(update(sessions).where(sessions.c.source == source).values(title=title))
        cx.execute(update(sources).where(sources.c.id == source).values(title=title))
    if not touched and not step.titles:
        return 0
    touch(cx, sorted(touched))
    for part in batches(sorted(touched)):
        cx.execute(delete(aaak).where(aaak.c.drawer.in_(part)))
        lines = select(closet_drawers.c.line).where(closet_drawers.c.drawer.in_(part))
        cx.execute(delete(closet_lines).where(closet_lines.c.id.in_(lines)))
    known = embedders(cx)
    for keys in batches(sorted(inputs - _still_used(cx, sorted(touched)))):
        cx.execute(delete(vectors).where(vectors.c.embedder.in_(known), vectors.c.input.in_(keys)))
    set_value(cx, FOUND_KEY, str(secrets.DETECTOR_VERSION))
    return len(touched)


def _stored(sealed: Sequence[SealedSpan]) -> str | None:
    return to_json([[span.start, span.end, span.kind, span.tag] for span in sealed]) if sealed else None


def _inputs(cx: Connection, rids: Sequence[int]) -> set[bytes]:
    """Return the keys under which the vectors of drawers lie as they were shown until now."""
    found: set[bytes] = set()
    for part in batches(rids):
        for row in cx.execute(select(*COLUMNS, drawers.c.context).where(drawers.c.rid.in_(part))).all():
            with suppress(ValueError, TypeError):
                text = served_text(row.text, sealed_spans(row.sealed))
                found |= {_input(context, text) for context in (row.context, mask_secrets(row.context, b""))}
    return found


def _still_used(cx: Connection, rids: Sequence[int]) -> set[bytes]:
    """Return the keys of the vectors of all drawers with the texts of these, as they are shown now."""
    found: set[bytes] = set()
    for part in batches(rids):
        hashes = select(drawers.c.sha256).where(drawers.c.rid.in_(part))
        query = select(*COLUMNS, drawers.c.context).where(drawers.c.sha256.in_(hashes))
        for row in cx.execute(query.where(drawers.c.seq.is_not(None))).all():
            with suppress(ValueError, TypeError):
                found.add(_input(mask_secrets(row.context, b""), shown(cx, row)))
    return found


def _input(context: str, text: str) -> bytes:
    return hashlib.sha256((f"{context}\n{text}" if context else text).encode("utf-8")).digest()
