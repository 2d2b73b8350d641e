"""The guard that keeps purged bytes from being filed again, and tells what quotes them.

Texts of at least ``WINDOW`` characters are known again wherever they are met, by keyed hashes; shorter ones
only where they stood, by the id of the drawer. A text in which a character was changed is another text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select

from castle.clock import to_iso
from castle.errors import RefusedError
from castle.records import Chunk, SealedSpan
from castle.store.ledger import get_value
from castle.store.purge_tables import purged, purges
from castle.store.purged import STUB, is_there, keyed
from castle.store.schema import drawers

if TYPE_CHECKING:
    from castle.store.filing import NewDrawer

WINDOW = 24
"""Characters from which a purged text is looked for in everything that is filed."""

RUN = 24
"""Bytes in a row by which a text quotes another."""

_ANCHOR_BITS = 24
_LEAST = 6
_PARTS = " › "
_MASK = (1 << 64) - 1
_guards: dict[tuple[bytes, int, int], Guard] = {}


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``[start, end)`` that hold purged text, and the purge that it fell to."""

    start: int
    end: int
    purge: int


@dataclass(frozen=True, slots=True)
class Marks:
    """What is kept of a text to know it again; all None for one that is too short."""

    tag: bytes | None
    length: int | None
    anchor: int | None


def marks_of(salt: bytes, text: str) -> Marks:
    """Return the marks of a text, of which white space around it has no part."""
    bare = text.strip()
    if len(bare) < WINDOW:
        return Marks(None, None, None)
    return Marks(_tag(salt, bare), len(bare), int(_anchors(salt, bare[:WINDOW])[0]))


class Guard:
    """Finds purged texts in others."""

    def __init__(self, salt: bytes, known: Iterable[tuple[int, int, bytes, int]]) -> None:
        """``known`` are anchor, length, tag and purge of each."""
        self._salt = salt
        self._purge: dict[bytes, int] = {}
        self._lengths: dict[int, set[int]] = {}
        for anchor, length, tag, purge in known:
            self._purge.setdefault(tag, purge)
            self._lengths.setdefault(anchor, set()).add(length)

    def find(self, text: str) -> list[Span]:
        """Return where ``text`` holds purged ones, in order and without overlaps."""
        if len(text) < WINDOW:
            return []
        import numpy as np

        known = np.fromiter(self._lengths, dtype=np.uint64)
        anchors = _anchors(self._salt, text)
        spans: list[Span] = []
        for place in np.flatnonzero(np.isin(anchors, known)).tolist():
            if spans and place < spans[-1].end:
                continue
            for length in sorted(self._lengths[int(anchors[place])], reverse=True):
                if place + length > len(text):
                    continue
                purge = self._purge.get(_tag(self._salt, text[place : place + length]))
                if purge is not None:
                    spans.append(Span(place, place + length, purge))
                    break
        return spans


def guard_of(cx: Connection) -> Guard | None:
    """Return the guard of a palace, None where there is nothing to look for."""
    if not is_there(cx):
        return None
    marked = purged.c.tag.is_not(None)
    state = cx.execute(select(func.count(), func.max(purged.c.drawer)).where(marked)).one()
    if not state[0]:
        return None
    salt = bytes.fromhex(get_value(cx, "salt") or "")
    key = (salt, state[0], state[1])
    found = _guards.get(key)
    if found is None:
        query = select(purged.c.anchor, purged.c.length, purged.c.tag, purged.c.purge).where(marked)
        found = Guard(salt, [(a, n, tag, purge) for a, n, tag, purge in cx.execute(query)])
        _guards.clear()
        _guards[key] = found
    return found


def refuse(cx: Connection, text: str) -> None:
    """Raise RefusedError for a text that holds one that was purged."""
    guard = guard_of(cx)
    found = guard.find(text) if guard is not None else []
    if found:
        row = cx.execute(select(purges).where(purges.c.id == found[0].purge)).one()
        raise RefusedError(
            f"it holds text that was purged by {row.actor} at {to_iso(row.at)} ({row.reason}): nothing was "
            "filed; leave that text out"
        )


def cut(
    items: Sequence[NewDrawer], guard: Guard, is_held: Callable[[NewDrawer], bool]
) -> Iterator[tuple[NewDrawer, int | None]]:
    """Cut purged text out of drawers that follow one another, each piece with the purge it fell to or None.

    What ``is_held`` is in the palace as it is, and stays whole. So do the bytes of other encodings, which are
    left out whole where they hold purged text.
    """
    for run in _runs(items):
        spans = guard.find("".join(item.chunk.text for item in run))
        at = 0
        for item in run:
            end = at + len(item.chunk.text)
            inside = [
                Span(max(span.start, at) - at, min(span.end, end) - at, span.purge)
                for span in spans
                if span.start < end and span.end > at
            ]
            at = end
            if not inside or is_held(item):
                yield item, None
            elif item.raw is not None:
                yield item, inside[0].purge
            else:
                yield from _pieces(item, inside)


class Quotes:
    """Tells whether a short text quotes one of some others."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._runs: set[bytes] = set()
        self._lines: set[str] = set()
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Look for these texts, too."""
        for text in texts:
            lines = (_bare(line) for line in text.splitlines())
            self._lines.update(line for line in lines if len(line.encode("utf-8", "surrogatepass")) >= _LEAST)
            for form in (text.strip(), " ".join(text.split())):
                self._runs.update(_windows(form.encode("utf-8", "surrogatepass")))

    def __bool__(self) -> bool:
        return bool(self._runs or self._lines)

    def __contains__(self, text: str) -> bool:
        if _bare(text) in self._lines:
            return True
        return not self._runs.isdisjoint(_windows(text.encode("utf-8", "surrogatepass")))

    def without(self, context: str) -> str:
        """Return a context without the parts that quote."""
        kept = _PARTS.join(part for part in context.split(_PARTS) if part not in self)
        return kept if kept not in self else ""


def _windows(data: bytes) -> Iterator[bytes]:
    return (data[at : at + RUN] for at in range(len(data) - RUN + 1))


def _bare(line: str) -> str:
    """Return a line as a path of headings has it."""
    return " ".join(line.strip().lstrip("#=*-> ").split())


def stands(cx: Connection, source: int, item: NewDrawer) -> bool:
    """Whether a source has a drawer with the content of ``item`` that was not purged."""
    digest = hashlib.sha256(item.content()).digest()
    held = (drawers.c.sha256 == digest, drawers.c.source == source, drawers.c.seq.is_not(None), ~STUB)
    return cx.execute(select(drawers.c.rid).where(*held).limit(1)).first() is not None


def _runs(items: Sequence[NewDrawer]) -> Iterator[list[NewDrawer]]:
    """Yield the drawers in groups that are one stretch of text."""
    run: list[NewDrawer] = []
    for item in items:
        if run and (run[-1].chunk.end, run[-1].message_id) != (item.chunk.start, item.message_id):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _pieces(item: NewDrawer, spans: Sequence[Span]) -> Iterator[tuple[NewDrawer, int | None]]:
    text = item.chunk.text
    at = 0
    for span in spans:
        # White space alone makes no drawer: it goes with what stands beside it.
        start = at if not text[at : span.start].strip() else span.start
        if start > at:
            yield _piece(item, at, start), None
        end = len(text) if not text[span.end :].strip() else span.end
        yield _piece(item, start, end), span.purge
        at = end
    if at < len(text):
        yield _piece(item, at, len(text)), None


def _piece(item: NewDrawer, start: int, end: int) -> NewDrawer:
    chunk = item.chunk
    if (start, end) == (0, len(chunk.text)):
        return item
    text = chunk.text[start:end]
    first = chunk.first_line + chunk.text.count("\n", 0, start)
    sealed = tuple(
        SealedSpan(max(span.start, start) - start, min(span.end, end) - start, span.kind, span.tag)
        for span in chunk.sealed
        if span.start < end and span.end > start
    )
    last = first + text.count("\n") - text.endswith("\n")
    made = Chunk(text, chunk.start + start, chunk.start + end, first, last, chunk.headings, sealed)
    return replace(item, chunk=made)


def _tag(salt: bytes, bare: str) -> bytes:
    return keyed(salt, hashlib.sha256(bare.encode("utf-8", "surrogatepass")).digest())


def _anchors(salt: bytes, text: str) -> Any:
    """Return a keyed number of ``_ANCHOR_BITS`` for each window of the text; most windows differ in it."""
    import numpy as np

    base, spread = _multipliers(salt)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    count = len(codes) - WINDOW + 1
    found = np.zeros(count, dtype=np.uint64)
    for place in range(WINDOW):
        found = found * base + codes[place : place + count]
    return (found * spread) >> np.uint64(64 - _ANCHOR_BITS)


def _multipliers(salt: bytes) -> tuple[Any, Any]:
    import numpy as np

    made = hashlib.blake2b(b"anchors of purged texts", key=salt[:64], digest_size=16).digest()
    first, second = (int.from_bytes(made[at : at + 8], "little") | 1 for at in (0, 8))
    return np.uint64(first & _MASK), np.uint64(second & _MASK)
