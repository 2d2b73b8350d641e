"""Cutting a text into exact slices of different kinds, and building messages from a record's blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from castle.mine.formats.base import (
    RECALL_CLOSE,
    RECALL_OPEN,
    Attachment,
    Kind,
    Message,
    Role,
)

Span: TypeAlias = tuple[int, int]
Slice: TypeAlias = tuple[int, int, Kind]

_PRIVATE = re.compile(r"<(private)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Injected:
    """How a host marks the text that it puts into a user's turn.

    ``tags``: ``<tag …>…</tag>`` is the host's. ``user_tags``: what stands inside these is the user's again.
    ``fences``: pairs of literal marks, both included. ``starts``: a text that begins so is the host's
    altogether. ``preambles``: pairs (start, end) for host text in front of the user's: a text that begins
    with ``start`` is the host's up to and including ``end``.
    """

    tags: frozenset[str] = frozenset()
    user_tags: frozenset[str] = frozenset()
    fences: tuple[tuple[str, str], ...] = ()
    starts: tuple[str, ...] = ()
    preambles: tuple[tuple[str, str], ...] = ()
    opening: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = "|".join(re.escape(tag) for tag in sorted(self.tags | self.user_tags))
        object.__setattr__(self, "opening", re.compile(rf"<({names or '(?!)'})(?:\s[^<>]*)?>"))


NOTHING_INJECTED = Injected()

_CLOSING = re.compile(r"<\s*/\s*" + re.escape(RECALL_CLOSE[2:-1]) + r"\b[^<>]*>", re.IGNORECASE)
_RECALL_OPEN_JSON = RECALL_OPEN.replace('"', r"\"")


def recall_block(body: str) -> str:
    """Wrap text that Castle hands to a host, so that a later reading of the transcript knows it again."""
    harmless = _CLOSING.sub(lambda tag: tag[0].replace("/", "\\/"), body)
    return f"{RECALL_OPEN}\n{harmless}\n{RECALL_CLOSE}"


def cut(text: str, role: Role, kind: Kind, injected: Injected = NOTHING_INJECTED) -> list[Slice]:
    """Partition a text into slices ``(start, end, kind)`` in order, without gaps; an empty text has none.

    Only a user's words are searched for host text and private blocks; recalled blocks are found in everything
    but what the model itself wrote. White space between special slices belongs to the host.
    """
    if not text:
        return []
    slices: list[Slice] = [(0, len(text), kind)]
    if "<" not in text and not _opens(text, injected):
        return slices
    ours = role == "user" and kind in ("message", "subagent", "queued", "injected")
    host: list[Span] = []
    if ours and kind != "injected":
        host, words = _host_spans(text, injected)
        slices = _paint(_paint(slices, host, "injected"), words, kind)
    if ours:
        slices = _paint(slices, list(_between(text, _PRIVATE, True)), "private")
    if role != "assistant" or kind == "tool":
        slices = _paint(slices, _recalled(text, kind, host), "recalled")
    return _settle(text, slices, kind)


def _opens(text: str, injected: Injected) -> bool:
    return (
        text.startswith(injected.starts)
        or any(text.startswith(start) for start, _ in injected.preambles)
        or any(start in text for start, _ in injected.fences)
    )


def _host_spans(text: str, injected: Injected) -> tuple[list[Span], list[Span]]:
    if injected.starts and text.startswith(injected.starts):
        return [(0, len(text))], []
    spans: list[Span] = []
    words: list[Span] = []
    for start, end in injected.preambles:
        stop = text.find(end) if text.startswith(start) else -1
        if stop >= 0:
            spans.append((0, stop + len(end)))
    for start, end in injected.fences:
        spans.extend(_between(text, re.compile(f"({re.escape(start)})"), False, end))
    spans.extend(_between(text, injected.opening, False))
    for tag in injected.user_tags:
        close = f"</{tag}>"
        for low, high in _between(text, re.compile(rf"<({re.escape(tag)})(?:\s[^<>]*)?>"), False):
            inner = text.index(">", low, high) + 1
            if text[inner : high - len(close)].strip():
                words.append((inner, high - len(close)))
    return spans, words


def _between(text: str, opening: re.Pattern[str], ignore_case: bool, end: str = "") -> Iterator[Span]:
    """Find each opening mark with the next closing one; a mark that is never closed opens nothing."""
    if opening.search(text) is None:
        return
    searched = _lowered(text) if ignore_case else text
    never_closed: set[str] = set()
    position = 0
    while (found := opening.search(text, position)) is not None:
        position = found.end()
        close = end or f"</{found[1].lower() if ignore_case else found[1]}>"
        if close in never_closed:
            continue
        stop = searched.find(close, found.end())
        if stop < 0:
            never_closed.add(close)
            continue
        position = stop + len(close)
        yield found.start(), position


def _lowered(text: str) -> str:
    """Lower ASCII letters only, so that offsets stay the same."""
    return text.translate({code: code + 32 for code in range(65, 91)})


def _recalled(text: str, kind: Kind, host: Sequence[Span]) -> list[Span]:
    spans: list[Span] = []
    position = 0
    while (start := _first(text, position)) >= 0:
        stop = text.find(RECALL_CLOSE, start)
        if stop >= 0:
            position = stop + len(RECALL_CLOSE)
        else:
            # A host may cut long output: the block then ends with what holds it, unless a person typed it.
            inside = [high for low, high in host if low <= start < high]
            position = len(text) if kind in ("tool", "injected") else max(inside, default=0)
        if position <= start:
            break
        spans.append((start, position))
    return spans


def _first(text: str, position: int) -> int:
    """Find the next opening tag, as it stands or inside a JSON string."""
    found = [place for tag in (RECALL_OPEN, _RECALL_OPEN_JSON) if (place := text.find(tag, position)) >= 0]
    return min(found, default=-1)


def _paint(slices: Sequence[Slice], spans: Iterable[Span], kind: Kind) -> list[Slice]:
    """Lay spans of one kind over a partition; spans may overlap each other."""
    ordered = sorted(spans)
    if not ordered:
        return list(slices)
    result: list[Slice] = []
    index = 0
    for low, high, old in slices:
        position = low
        while index < len(ordered) and ordered[index][0] < high:
            start, end = max(ordered[index][0], position), min(ordered[index][1], high)
            if start < end:
                if position < start:
                    result.append((position, start, old))
                result.append((start, end, kind))
                position = end
            if ordered[index][1] > high:
                break
            index += 1
        if position < high:
            result.append((position, high, old))
    return result


def _settle(text: str, slices: Sequence[Slice], kind: Kind) -> list[Slice]:
    result: list[Slice] = []
    for low, high, what in slices:
        if what == kind and len(slices) > 1 and text[low:high].isspace():
            what = "injected"
        if result and result[-1][2] == what:
            result[-1] = (result[-1][0], high, what)
        else:
            result.append((low, high, what))
    return result


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of a record; ``label`` places it there (empty: the first); None means as the record."""

    label: str
    text: str
    kind: Kind | None = None
    role: Role | None = None
    tool: str = ""
    attachments: tuple[Attachment, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


def messages(
    record: Message, pieces: Sequence[Piece], injected: Injected = NOTHING_INJECTED
) -> Iterator[Message]:
    """Turn the blocks of a record into messages; ``record`` gives what they share, its text is not used.

    Blocks without text give their attachments to the record's first words; if there are none they stand
    alone.
    """
    files = tuple(one for piece in pieces if not piece.text for one in piece.attachments)
    cuts = [
        (piece, cut(piece.text, piece.role or record.role, piece.kind or record.kind, injected))
        for piece in pieces
        if piece.text
    ]
    taker = _taker(cuts, record.kind)
    for piece, slices in cuts:
        whole = f"{record.id}#{piece.label}" if piece.label else record.id
        for low, high, kind in slices:
            own = piece.attachments if low == 0 else ()
            if files and (whole, low) == (f"{record.id}#{taker[0]}" if taker[0] else record.id, taker[1]):
                own, files = own + files, ()
            yield replace(
                record,
                id=f"{whole}@{low}" if low else whole,
                whole=whole,
                role=piece.role or record.role,
                kind=kind,
                text=piece.text[low:high],
                tool=piece.tool or record.tool,
                attachments=own,
                metadata={**record.metadata, **piece.metadata} if piece.metadata else record.metadata,
            )
    if files:
        first = next(piece for piece in pieces if piece.attachments and not piece.text)
        whole = f"{record.id}#{first.label}" if first.label else record.id
        yield replace(record, id=whole, whole=whole, text="", attachments=files)


def _taker(cuts: Sequence[tuple[Piece, list[Slice]]], kind: Kind) -> tuple[str, int]:
    """Choose the slice that takes the attachments: the first of the record's own kind, else the first."""
    places = [(piece.label, low, what) for piece, slices in cuts for low, _, what in slices]
    own = [(label, low) for label, low, what in places if what == kind]
    return own[0] if own else (places[0][0], places[0][1]) if places else ("\0", 0)
