"""What a source is about in a few lines that point at its drawers: topics, quotes, and who occurs in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from castle.text.aaak_words import STOPWORDS

MOST_TOPICS = 12
MOST_QUOTES = 3
MOST_ENTITIES = 5
MOST_POINTERS = 3
CLOSET_CHARACTERS = 1500

_CANDIDATES = 4096
_NAMES_A_DRAWER = 32
_ACTION = re.compile(
    r"\b(?:built|fixed|wrote|added|pushed|tested|created|decided|migrated|reviewed|deployed|configured|removed"
    r"|updated)[ \t]+\w[\w \t-]{2,39}\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,3}[ \t]+(\S[^\n]{3,58}\S)[ \t]*$", re.MULTILINE)
_QUOTE = re.compile(r'"([^"\n]{15,150})"|“([^”\n]{15,150})”')
_NAME = re.compile(r"(?<![.!?:][ \n])(?<!^)(?<!\n)\b[^\W\d_]\w+")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ClosetLine:
    """One line: what is said, who occurs where it is said, and the numbers of the drawers that say it."""

    subject: str
    entities: tuple[str, ...]
    drawers: tuple[int, ...]

    def text(self, ids: Sequence[str]) -> str:
        """Write the line with the ids of its drawers."""
        return f"{self.subject}|{';'.join(self.entities)}|→{','.join(ids)}"


@dataclass(slots=True)
class _Candidate:
    count: int = 0
    places: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)


class _Candidates:
    """Sayings in the order they first occurred; of too many, every second that came once is let go."""

    def __init__(self) -> None:
        self._found: dict[str, _Candidate] = {}

    def add(self, saying: str, drawer: int, names: tuple[str, ...]) -> None:
        found = self._found.get(saying)
        if found is None:
            if len(self._found) >= _CANDIDATES:
                self._thin_out()
            found = self._found[saying] = _Candidate()
        found.count += 1
        if len(found.places) < MOST_POINTERS and all(drawer != known for known, _ in found.places):
            found.places.append((drawer, names))

    def best(self, most: int) -> list[tuple[str, _Candidate]]:
        """Return those said most often, in the order of the text; equals are taken from all over it."""
        chosen: set[str] = set()
        for count in sorted({found.count for found in self._found.values()}, reverse=True):
            equals = [saying for saying, found in self._found.items() if found.count == count]
            chosen.update(spread(equals, most - len(chosen)))
        return [(saying, found) for saying, found in self._found.items() if saying in chosen]

    def _thin_out(self) -> None:
        order = sorted(self._found.items(), key=lambda item: -item[1].count)[: _CANDIDATES // 2]
        often = {saying for saying, found in order if found.count > 1}
        once = [saying for saying in self._found if saying not in often][::2]
        kept = often | set(once)
        self._found = {saying: found for saying, found in self._found.items() if saying in kept}


class Gist:
    """Collects what a source is about from its drawers, one at a time and in bounded memory."""

    def __init__(self) -> None:
        self._topics = _Candidates()
        self._quotes = _Candidates()
        self._names: Counter[str] = Counter()
        self._first: list[tuple[int, tuple[str, ...]]] = []

    def add(self, drawer: int, text: str) -> None:
        """Take in the served text of a drawer that the caller knows by a number."""
        names = tuple(dict.fromkeys(self._count_names(text)))[:_NAMES_A_DRAWER]
        if len(self._first) < MOST_POINTERS:
            self._first.append((drawer, names))
        for topic in _topics(text):
            self._topics.add(topic, drawer, names)
        for match in _QUOTE.finditer(text):
            said = match.group(1) or match.group(2)
            self._quotes.add(f'"{_plain(said)}"', drawer, names)

    def lines(self, fallback: str) -> list[ClosetLine]:
        """Return the lines; a source without topics and quotes has one that says ``fallback``."""
        often = [name for name, count in self._names.most_common() if count > 1][:MOST_ENTITIES]
        chosen = [*self._topics.best(MOST_TOPICS), *self._quotes.best(MOST_QUOTES)]
        lines = [_line(saying, found.places, often) for saying, found in chosen]
        if not lines and self._first:
            lines = [_line(_plain(fallback), self._first, often)]
        return lines

    def _count_names(self, text: str) -> Iterator[str]:
        if len(self._names) > 2 * _CANDIDATES:
            self._names = Counter(dict(self._names.most_common(_CANDIDATES)))
        for match in _NAME.finditer(text):
            name = match.group()[:40]
            if name[0].isupper() and name.casefold() not in STOPWORDS:
                self._names[name] += 1
                yield name


def pack(lines: Iterable[str]) -> list[str]:
    """Put lines together into closets of at most 1,500 characters; no line is cut."""
    packed: list[str] = []
    for line in lines:
        if packed and len(packed[-1]) + 1 + len(line) <= CLOSET_CHARACTERS:
            packed[-1] += "\n" + line
        else:
            packed.append(line)
    return packed


def spread(items: Sequence[str], most: int) -> list[str]:
    """Take at most so many items, at even distances."""
    if len(items) <= most:
        return list(items)
    return [items[number * len(items) // most] for number in range(most)]


def _line(saying: str, places: Sequence[tuple[int, tuple[str, ...]]], often: Sequence[str]) -> ClosetLine:
    """Name only those who occur in the drawers pointed at, so that the line repeats no other drawer."""
    present = {name for _, names in places for name in names}
    entities = tuple(name for name in often if name in present)
    return ClosetLine(saying, entities, tuple(drawer for drawer, _ in places))


def _topics(text: str) -> Iterator[str]:
    for match in _HEADING.finditer(text):
        yield _plain(match.group(1)).casefold()
    for match in _ACTION.finditer(text):
        yield _plain(match.group()).casefold()


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text.replace("|", "/")).strip()
