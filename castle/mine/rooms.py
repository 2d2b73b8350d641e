"""Rooms of a project: finding them when it is set up, and choosing one for each file, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import repeat

from castle.config import Room, check_name
from castle.errors import UsageError

GENERAL = "general"
MAX_NAME = 128
ROUTED_CHARACTERS = 2000
MAX_ROOMS_FROM_NAMES = 6

_FOLDERS = {
    "frontend": "frontend front-end client ui gui web views components pages layouts styles",
    "backend": "backend back-end server api routes services controllers models database db migrations"
    " graphql",
    "documentation": "documentation docs doc wiki readme notes guides manual",
    "design": "design designs mockups wireframes assets storyboard figma",
    "costs": "costs cost budget budgets finance pricing invoices accounting",
    "meetings": "meetings meeting calls standup minutes",
    "team": "team staff hr hiring employees people",
    "research": "research references reading papers literature",
    "planning": "planning roadmap strategy specs requirements proposals",
    "testing": "testing test tests qa e2e",
    "scripts": "scripts tools utils bin",
    "configuration": "configuration config configs settings infrastructure infra deploy",
}
FOLDER_ROOMS = {word: room for room, words in _FOLDERS.items() for word in words.split()}
"""Which room a folder of that name stands for."""

_DESCRIPTIONS = {
    "frontend": "What users see: pages, components, styles",
    "backend": "Servers, interfaces and databases",
    "documentation": "Documents and notes",
    "design": "Drafts, mock-ups and assets",
    "costs": "Budgets, prices and invoices",
    "meetings": "Meetings and calls",
    "team": "People who work on it",
    "research": "References and reading",
    "planning": "Plans, requirements and road maps",
    "testing": "Tests and quality",
    "scripts": "Scripts and tools",
    "configuration": "Settings and infrastructure",
    GENERAL: "Everything that fits no other room",
}
# Scripts written without spaces, where a word has no boundary to look for.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def valid_name(kind: str, name: str) -> None:
    """Raise UsageError when a wing, room, agent, topic or predicate cannot have this name, and say why."""
    check_name(kind, name)


def normalize_wing(name: str) -> str:
    """Return the wing a name stands for: lower case, spaces and hyphens as "_", always a valid name."""
    return slug(name)


def slug(name: str) -> str:
    """Return the valid name nearest to any text; ``unnamed`` when nothing of it can be kept."""
    # Lower case can be composed where upper case cannot: "J̌" is two characters, "ǰ" is one.
    lowered = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())
    lowered = lowered.replace(" ", "_").replace("-", "_")
    kept = "".join(char if _fits(f"a{char}a") else "_" for char in lowered).replace("..", "_")
    kept = _trim(_trim(kept)[:MAX_NAME])
    return kept or "unnamed"


def detect_rooms(paths: Iterable[str]) -> tuple[Room, ...]:
    """Return the rooms that the folders of a project suggest, "general" last.

    ``paths`` are relative, with "/" between names. Folders at the top count, known ones also one level
    deeper; an unknown one at the top is a room of its own. When no folder suggests any, file names do: words
    that occur in at least two of them, at most six rooms.
    """
    listed = [path.split("/") for path in paths]
    words: dict[str, dict[str, None]] = {}
    for folder in _ordered(parts[0] for parts in listed if len(parts) > 1):
        room = FOLDER_ROOMS.get(_normal(folder)) or _own_room(folder)
        if room:
            words.setdefault(room, {})[_normal(folder)] = None
    for folder in _ordered(parts[1] for parts in listed if len(parts) > 2):
        room = FOLDER_ROOMS.get(_normal(folder), "")
        if room:
            words.setdefault(room, {})[_normal(folder)] = None
    if not words:
        words = {room: {} for room in _rooms_from_names(parts[-1] for parts in listed)}
    words.pop(GENERAL, None)
    return (*(_room(name, extra) for name, extra in words.items()), _room(GENERAL, ()))


def room_for(relpath: str, head_text: str, rooms: Sequence[Room]) -> str:
    """Return the room of a file.

    What decides, in this order: a folder that is named like a room or one of its keywords, outermost first; a
    folder that has such a word in its name; words of the file's own name; how often the words occur in the
    first 2,000 characters. Only whole words count. Else it is "general".
    """
    candidates = [room for room in rooms if room.name != GENERAL]
    *folders, file = relpath.split("/")
    for folder in folders:
        for room in candidates:
            if _normal(folder) in _phrases(room):
                return room.name
    for name in (*folders, file.rsplit(".", 1)[0] if file.rfind(".") > 0 else file):
        room_name = _best(candidates, " ".join(_name_words(name)))
        if room_name:
            return room_name
    return _best(candidates, head_text[:ROUTED_CHARACTERS]) or GENERAL


class Words:
    """The words of a text, counted once, in which any number of phrases is looked up.

    Letter case does not matter. Words are whole: runs of letters, digits and the marks on them.
    """

    def __init__(self, text: str) -> None:
        self._text = _folded(text)
        self._counts = Counter(_word(self._text.isascii()).findall(self._text))

    def distinct(self, phrases: tuple[str, ...]) -> int:
        """Count how many of the phrases occur."""
        single, others = _sorted(phrases)
        return sum(map(self._counts.__contains__, single)) + sum(self.count(other) > 0 for other in others)

    def total(self, phrases: tuple[str, ...]) -> int:
        """Count how often the phrases occur, all together."""
        single, others = _sorted(phrases)
        return sum(map(self._counts.get, single, repeat(0))) + sum(map(self.count, others))

    def count(self, phrase: str) -> int:
        """Count how often a word or phrase occurs.

        Hyphens, underscores and spaces inside the phrase are the same. In scripts written without spaces any
        occurrence counts.
        """
        needle = _needle(phrase)
        for word in needle.words:
            if word not in self._counts:
                return 0
        if needle.pattern is None:
            return self._counts[needle.words[0]] if needle.words else 0
        return sum(1 for _ in needle.pattern.finditer(self._text))


@dataclass(frozen=True, slots=True)
class _Needle:
    """What to look up for a phrase: words that must be there, and a pattern where one word is not all."""

    words: tuple[str, ...]
    pattern: re.Pattern[str] | None


@lru_cache(maxsize=4096)
def _needle(phrase: str) -> _Needle:
    parts = [part for part in re.split(r"[\s_-]+", _folded(phrase.strip())) if part]
    words = tuple(
        part for part in parts if _word(part.isascii()).fullmatch(part) and not _UNSPACED.search(part)
    )
    if len(parts) == len(words) < 2:
        return _Needle(words, None)
    before = "" if _UNSPACED.match(parts[0][0]) else r"(?<![^\W_])"
    after = "" if _UNSPACED.match(parts[-1][-1]) else r"(?![^\W_])"
    return _Needle(words, re.compile(before + r"[\s_-]+".join(map(re.escape, parts)) + after))


@lru_cache(maxsize=1024)
def _sorted(phrases: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that single-word phrases are looked up by, and the other phrases."""
    needles = [(phrase, _needle(phrase)) for phrase in phrases]
    alone = [len(needle.words) == 1 and needle.pattern is None for _, needle in needles]
    single = tuple(needle.words[0] for (_, needle), one in zip(needles, alone, strict=True) if one)
    return single, tuple(phrase for (phrase, _), one in zip(needles, alone, strict=True) if not one)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


@cache
def _word(ascii_only: bool) -> re.Pattern[str]:
    """Match a run of letters and digits, and the marks on them, which no class of the module re covers."""
    if ascii_only:
        return re.compile(r"[A-Za-z0-9]+")
    assigned = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = "".join(chr(code) for code in assigned if unicodedata.category(chr(code))[0] == "M")
    return re.compile(rf"[^\W_]+(?:[{marks}]+[^\W_]*)*")


def _best(rooms: Sequence[Room], text: str) -> str:
    """Return the room whose words occur most often, the first of equals; empty when none does."""
    best, most = "", 0
    words = Words(text if rooms else "")
    for room in rooms:
        count = words.total(_phrases(room))
        if count > most:
            best, most = room.name, count
    return best


@lru_cache(maxsize=1024)
def _phrases(room: Room) -> tuple[str, ...]:
    """Return what a room is called, each phrase once."""
    return tuple(dict.fromkeys(phrase for word in (room.name, *room.keywords) if (phrase := _normal(word))))


@lru_cache(maxsize=4096)
def _normal(word: str) -> str:
    return re.sub(r"[\s_-]+", "_", _folded(word).strip())


def _name_words(name: str) -> Iterator[str]:
    """Yield the words of a file or folder name; CamelCase is taken apart."""
    composed = unicodedata.normalize("NFC", name)
    for word in _word(composed.isascii()).findall(composed):
        yield from _CAMEL.split(word)


def _ordered(folders: Iterable[str]) -> list[str]:
    return sorted(set(folders))


def _own_room(folder: str) -> str:
    """Return the room an unknown folder makes, empty for hidden ones and abbreviations."""
    if not folder[:1].isalpha() or (folder.isascii() and len(folder) <= 2):
        return ""
    return slug(folder)


def _rooms_from_names(files: Iterable[str]) -> list[str]:
    names = [{word.casefold() for word in _name_words(file)} for file in files]
    counts: Counter[str] = Counter()
    for words in names:
        counts.update({FOLDER_ROOMS[word] for word in words if word in FOLDER_ROOMS})
    frequent = [(-count, room) for room, count in counts.items() if count >= 2]
    return [room for _, room in sorted(frequent)[:MAX_ROOMS_FROM_NAMES]]


def _room(name: str, extra: Iterable[str]) -> Room:
    known = [word for word, room in FOLDER_ROOMS.items() if room == name]
    keywords = dict.fromkeys(word for word in (*known, *extra) if word != name)
    return Room(name, _DESCRIPTIONS.get(name, ""), tuple(keywords))


@lru_cache(maxsize=4096)
def _fits(name: str) -> bool:
    try:
        check_name("wing", name)
    except UsageError:
        return False
    return True


def _trim(name: str) -> str:
    """Cut what a name may not begin or end with."""
    start, end = 0, len(name)
    while start < end and not _fits(name[start]):
        start += 1
    while end > start and not _fits(f"a{name[end - 1]}"):
        end -= 1
    return name[start:end]
