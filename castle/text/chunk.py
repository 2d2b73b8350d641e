r"""Cutting a source of any size into chunks along its structure.

The chunks of a source, one after the other, are the source. Each holds at most ``max_chars`` characters and
at most ``max_tokens`` word pieces, as it stands and as it is served. A chunk begins where the structure is
strongest within reach: at a heading or definition, a paragraph, a line, a sentence, a word. Among equally
strong places the choice depends on the text that follows the place, so that an edit changes the chunks near
it and no others. A single character is a chunk even where its word pieces are too many.

Lines end with ``\n`` or ``\r\n``; a lone ``\r`` ends no line, although a chunk may well begin after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from castle.records import Chunk, SealedSpan
from castle.text import structure
from castle.text.atoms import Atom, Splitter
from castle.text.headings import HeadingPath
from castle.text.scan import Scanner
from castle.text.served import served_text
from castle.text.structure import reader_for

Count = Callable[[Sequence[str]], Sequence[int]]
"""Counts the word pieces of each text. White space parts texts: the counts around it add up."""

MAX_CHARS = 800
MAX_TOKENS = 222

_SLICE = 262_144  # characters of a block that are worked on at once
_BATCH = 65_536  # characters that are counted at once
_WHITE = " \t\n\r"

# How far a chunk has grown where a boundary stands, in fractions of what it may hold, parts five zones.
_ZONES = (0.15, 0.25, 0.4, 0.5)
_LAST = 13
# Order of preference (0 is best) by class of strength and zone.
_TIERS = (
    (_LAST, 1, 1, 0, 0),  # heading, definition
    (_LAST, 5, 3, 2, 2),  # nested definition, paragraph
    (_LAST, 5, 5, 4, 4),  # line
    (_LAST, _LAST, 7, 6, 6),  # sentence
    (_LAST, _LAST, _LAST, 9, 8),  # white space
    (_LAST, _LAST, _LAST, 12, 10),  # less
)
_TIERS_OF = tuple(
    next(tiers for tiers, least in zip(_TIERS, (90, 55, 45, 35, 28, 0), strict=True) if strength >= least)
    for strength in range(101)
)
_AHEAD = 1.6  # how far to look for the next section, and
_LEAST_END = 0.2  # what to leave for the chunk before it


def chunks(
    blocks: Iterable[str],
    *,
    name: str,
    salt: bytes,
    count: Count | None = None,
    max_chars: int = MAX_CHARS,
    max_tokens: int = MAX_TOKENS,
) -> Iterator[Chunk]:
    """Cut a text that arrives in blocks, however these are cut, into chunks.

    The suffix of ``name`` says how the text is built (``notes.md``, ``tool.py``); ``salt`` keys the tags of
    secrets. Memory is bounded by the largest block.
    """
    chunker = Chunker(name=name, salt=salt, count=count, max_chars=max_chars, max_tokens=max_tokens)
    for block in blocks:
        for start in range(0, len(block), _SLICE):
            yield from chunker.feed(block[start : start + _SLICE])
    yield from chunker.finish()


class Chunker:
    """Takes the text of one source block by block and gives its chunks; see ``chunks``."""

    def __init__(
        self,
        *,
        name: str,
        salt: bytes,
        count: Count | None = None,
        max_chars: int = MAX_CHARS,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        if max_chars < 2 or max_tokens < 1:
            raise ValueError("a chunk holds at least 2 characters and 1 token")
        self._counter = count or _word_pieces()
        self._max_chars = max_chars
        self._max_tokens = max_tokens
        self._splitter = Splitter(reader_for(name), max_chars * 4 // 5, max_chars // 2)
        self._scanner = Scanner(salt)
        self._headings = HeadingPath(self._count)
        self._pending: list[Atom] = []  # not counted yet
        self._pending_chars = 0
        self._queue: list[Atom] = []  # counted, not in a chunk yet
        self._spans: list[SealedSpan] = []
        self._line = 1
        self._replace = False  # the text holds surrogates, which cannot be counted as they are

    def feed(self, block: str) -> list[Chunk]:
        """Take the next block; gives the chunks that are complete."""
        if not self._replace and not block.isascii():
            try:
                block.encode("utf-8")
            except UnicodeEncodeError:
                self._replace = True
        return self._advance(block, final=False)

    def finish(self) -> list[Chunk]:
        """Give the chunks that remain at the end of the text."""
        return self._advance("", final=True)

    def _advance(self, block: str, *, final: bool) -> list[Chunk]:
        self._spans.extend(self._scanner.feed(block, final))
        atoms = self._splitter.feed(block, final)
        self._pending.extend(atoms)
        self._pending_chars += sum(len(atom.text) for atom in atoms)
        if self._pending_chars < _BATCH and not final:
            return []
        self._queue.extend(self._counted(self._pending))
        self._pending, self._pending_chars = [], 0
        return self._drain(final)

    def _count(self, texts: Sequence[str]) -> Sequence[int]:
        if self._replace:
            texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return self._counter(texts)

    def _counted(self, atoms: list[Atom]) -> list[Atom]:
        """Count atoms and cut those that hardly leave room for another in a chunk."""
        most_chars, most_tokens = self._max_chars * 9 // 10, max(1, self._max_tokens * 4 // 5)
        counted: list[Atom] = []
        places: list[int] = []
        for atom, tokens in zip(atoms, self._count([atom.text for atom in atoms]), strict=True):
            atom.tokens = tokens
            if (tokens > most_tokens or len(atom.text) > most_chars) and len(atom.text) > 1:
                places.append(len(counted))
            counted.append(atom)
        if not places:
            return counted
        parts = [self._parts(counted[place]) for place in places]
        smaller = iter(self._counted([part for group in parts if len(group) > 1 for part in group]))
        return self._replaced(counted, dict(zip(places, parts, strict=True)), smaller)

    def _parts(self, atom: Atom) -> list[Atom]:
        size = len(atom.text)
        most = min(self._max_chars // 2, size // 2, size * self._max_tokens // (2 * max(1, atom.tokens)))
        return atom.parts(max(1, most))

    @staticmethod
    def _replaced(counted: list[Atom], parts: dict[int, list[Atom]], smaller: Iterator[Atom]) -> list[Atom]:
        """Put the counted parts in the place of the atoms they were cut from."""
        ready = next(smaller, None)
        found: list[Atom] = []
        for number, atom in enumerate(counted):
            if len(parts.get(number, ())) < 2:
                found.append(atom)
                continue
            end = atom.start + len(atom.text)
            while ready is not None and ready.start < end:
                found.append(ready)
                ready = next(smaller, None)
        return found

    def _drain(self, final: bool) -> list[Chunk]:
        """Give all chunks for which enough of the following text is known."""
        found: list[Chunk] = []
        queue = self._queue
        head = 0
        known = queue[-1].start + len(queue[-1].text) if queue else 0
        if not final:
            known = min(known, self._scanner.settled)
        while head < len(queue) and (final or known - queue[head].start > 2 * self._max_chars):
            end = self._end(head)
            found.append(self._chunk(queue[head:end]))
            head = end
        del queue[:head]
        return found

    def _end(self, head: int) -> int:
        """Choose where the chunk ends that begins with atom ``head``, and see to it that it fits."""
        queue = self._queue
        tokens = self._max_tokens
        while True:
            end = _choose(queue, head, self._max_chars, tokens)
            excess = self._excess(queue[head:end])
            if excess == 0:
                return end
            if end - head > 1:
                tokens = min(tokens - 1, sum(atom.tokens for atom in queue[head:end]) - 1) * 9 // 10
                tokens = max(1, tokens)
                continue
            parts = self._parts(queue[head]) if len(queue[head].text) > 1 else []
            if len(parts) < 2:
                return end
            queue[head:end] = self._counted(parts)

    def _excess(self, atoms: list[Atom]) -> int:
        """By how many pieces a chunk of these atoms is too large where their counts do not tell."""
        text = "".join(atom.text for atom in atoms)
        start = atoms[0].start
        sealed = self._sealed(start, start + len(text))
        forms: list[str] = []
        if sealed:
            forms.append(served_text(text, sealed))
        if sealed or not _parted([atom.text for atom in atoms]):
            forms.append(text)
        if not forms:
            return 0
        return max(0, max(self._count(forms)) - self._max_tokens)

    def _sealed(self, start: int, end: int) -> tuple[SealedSpan, ...]:
        """List the parts of sealed spans in ``[start, end)``, counted from ``start``."""
        if not self._spans:
            return ()
        return tuple(
            SealedSpan(max(span.start, start) - start, min(span.end, end) - start, span.kind, span.tag)
            for span in self._spans
            if span.start < end and span.end > start
        )

    def _chunk(self, atoms: list[Atom]) -> Chunk:
        text = "".join(atom.text for atom in atoms)
        start = atoms[0].start
        end = start + len(text)
        self._headings.enter(atoms[0], self._spans)
        path = self._headings.path()
        for atom in atoms[1:]:
            if atom.level >= 0:
                self._headings.enter(atom, self._spans)
        first = self._line
        self._line += text.count("\n")
        sealed = self._sealed(start, end)
        if sealed:
            self._spans = [span for span in self._spans if span.end > end]
        return Chunk(
            text=text,
            start=start,
            end=end,
            first_line=first,
            last_line=self._line - (text[-1] == "\n"),
            headings=path,
            sealed=sealed,
        )


def _word_pieces() -> Count:
    from castle.text.wordpiece import count_many

    return count_many


def _parted(texts: Sequence[str]) -> bool:
    """Whether white space stands between each two of the texts, so that their word pieces add up."""
    return all(
        [before[-1] in _WHITE or after[0] in _WHITE for before, after in zip(texts, texts[1:], strict=False)]
    )


def _choose(queue: list[Atom], head: int, max_chars: int, max_tokens: int) -> int:
    """Choose the atom at which the next chunk begins, by structure and by the text near it."""
    scale = max_chars * max_tokens
    zones = [zone * scale for zone in _ZONES]
    candidates: list[tuple[int, int, int, int]] = []  # tier, less strength, atom, size
    chars, tokens = len(queue[head].text), queue[head].tokens
    size = 0
    at = head + 1
    while at < len(queue):
        size = max(chars * max_tokens, tokens * max_chars)
        if size > scale:
            break
        atom = queue[at]
        strength = atom.strength
        candidates.append((_TIERS_OF[strength][bisect_right(zones, size)], -strength, at, size))
        chars += len(atom.text)
        tokens += atom.tokens
        at += 1
    else:
        size = max(chars * max_tokens, tokens * max_chars)
        if size <= scale:
            return _last_section(queue, candidates, size, scale)
    if not candidates:
        return head + 1
    return _best(queue, candidates, _next_section(queue, at, (chars, tokens), (max_chars, max_tokens)), scale)


def _last_section(
    queue: list[Atom], candidates: list[tuple[int, int, int, int]], size: int, scale: int
) -> int:
    """What is left fits into one chunk: cut it only between two sections worth a chunk each."""
    least = _ZONES[2] * scale
    sections = [found for found in candidates if found[0] == 0 and size - found[3] >= least]
    return _best(queue, sections, 0, scale) if sections else len(queue)


def _next_section(queue: list[Atom], at: int, so_far: tuple[int, int], most: tuple[int, int]) -> int:
    """The size up to the next section, or the end of the text, beyond the chunk's reach; 0 when it is far."""
    chars, tokens = so_far
    max_chars, max_tokens = most
    limit = _AHEAD * max_chars * max_tokens
    while True:
        size = max(chars * max_tokens, tokens * max_chars)
        if size > limit:
            return 0
        if at == len(queue) or queue[at].strength >= structure.HEADING:
            return size
        chars += len(queue[at].text)
        tokens += queue[at].tokens
        at += 1


def _best(queue: list[Atom], candidates: list[tuple[int, int, int, int]], section: int, scale: int) -> int:
    """The best candidate; ``section`` is the size at which the next section begins, 0 when far."""
    tier = min(candidates)[0]
    if tier == _LAST:
        whole = [found for found in candidates if found[1] != -structure.INSIDE]
        return (whole or candidates)[-1][2]
    equals = [found for found in candidates if found[0] == tier]
    if section and tier > 1:
        room = section - _LEAST_END * scale
        equals = [found for found in equals if found[3] <= room] or equals
    strength = min(found[1] for found in equals)
    equals = [found for found in equals if found[1] == strength]
    if len(equals) == 1:
        return equals[0][2]
    return min(equals, key=lambda found: (queue[found[2]].rank(), -found[2]))[2]
