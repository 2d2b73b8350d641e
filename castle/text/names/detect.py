"""Noticing new names in prose: who is spoken of like a person, what is spoken of like a project.

Candidates are capitalised words, alone or in a row, for the languages that write names so; for Chinese,
Japanese, Korean and Hindi what stands with a title, a verb of speaking or a colon (``unspaced``). Each is
scored on a bounded number of texts by the words around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from castle.text.names.context import Context
from castle.text.names.locales import Locale, locales, merged, shared
from castle.text.names.scripts import WORD, fold, letters

Kind = Literal["person", "project", "uncertain"]

MIN_OCCURRENCES = 3
MAX_PEOPLE = 15
MAX_PROJECTS = 10
SAMPLE = 20
_PER_TEXT = 5
_NEARBY = 200
_DETERMINED = 0.3
_PLACED = 0.1

_UPPER, _LOWER = letters(True), letters(False)
_PART = rf"(?:[OD]['’])?[{_UPPER}][{_LOWER}][{_UPPER}{_LOWER}\u0300-\u036f]{{0,18}}"
_VERSION = re.compile(r"[ \-@]?v?\d+\.\d+|[ \-@]v\d+\b")
_NUMBERED = re.compile(r" #?\d{1,3}\b(?!\.\d)")
_FILE = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|go|rs|rb|java|sh|toml|json|ya?ml|lock|md|html|css|sql|io|dev)\b|\(\)|/"
)

_WEIGHTS = {"dialogue": 3, "verb": 2, "pronoun": 2, "address": 4}
_PROJECT_WEIGHTS = {"action": 2, "version": 3, "file": 3}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name that was noticed; ``count`` is how often, ``signals`` what speaks for which kind."""

    name: str
    kind: Kind
    confidence: float
    count: int
    signals: tuple[str, ...] = ()


@dataclass(slots=True)
class Sighting:
    """Where one name was seen and what was seen around it."""

    shown: Counter[str] = field(default_factory=Counter)
    count: int = 0
    determined: int = 0
    inside: int = 0
    placed: int = 0
    places: list[tuple[int, int, int]] = field(default_factory=list)
    signals: Counter[str] = field(default_factory=Counter)

    def see(self, text: int, start: int, end: int, sample: int) -> None:
        """Keep a place to look at later, of each text a few, of all texts ``sample``."""
        self.count += 1
        mine = sum(1 for place in self.places[-_PER_TEXT:] if place[0] == text)
        if mine < _PER_TEXT and (mine or len({place[0] for place in self.places}) < sample):
            self.places.append((text, start, end))


def detect(
    texts: Sequence[str],
    codes: Iterable[str] = ("en",),
    *,
    sample: int = SAMPLE,
    known: Iterable[str] = (),
) -> list[Candidate]:
    """Return the names noticed in texts, people first, the surest first.

    ``sample`` texts are read to judge one name. Names in ``known`` are left out. At most 15 people and 10
    projects are returned. Raises ConfigError for a language without data.
    """
    from castle.text.names.unspaced import detect_unspaced

    chosen = locales(codes)
    left_out = {" ".join(fold(word) for word in WORD.findall(name)) for name in known}
    found: list[Candidate] = []
    cased = tuple(item.code for item in chosen if item.style == "cased")
    if cased:
        words = merged(cased)
        found += [
            _judged(sighting)
            for key, sighting in _sightings(texts, words, sample).items()
            if key not in left_out and _score(texts, sighting, words)
        ]
    for item in chosen:
        if item.style != "cased":
            found += (c for c in detect_unspaced(texts, item) if fold(c.name) not in left_out)
    return _capped(found)


def classify(signals: Counter[str], count: int, inside: int) -> tuple[Kind, float]:
    """Return what signals make of a name that was seen ``count`` times, and how sure that is.

    ``inside`` is how often it stood inside a sentence: what only begins sentences has its capital from that.
    """
    person = {name: signals[name] * weight for name, weight in _WEIGHTS.items() if signals[name]}
    project = {name: signals[name] * weight for name, weight in _PROJECT_WEIGHTS.items() if signals[name]}
    people, projects = sum(person.values()), sum(project.values())
    if not people + projects:
        return "uncertain", min(0.4, count / 50)
    ratio = people / (people + projects)
    if ratio >= 0.7:
        spoken_of = signals["pronoun"] >= 5 and signals["pronoun"] >= 0.2 * count and inside >= 0.2 * count
        if (len(person) >= 2 and people >= 5) or spoken_of:
            return "person", min(0.99, 0.5 + 0.5 * ratio)
        return "uncertain", 0.4
    if ratio <= 0.3 and len(project) >= 2 and projects >= 5:
        return "project", min(0.99, 0.5 + 0.5 * (1 - ratio))
    return "uncertain", 0.5


def _capped(found: list[Candidate]) -> list[Candidate]:
    found.sort(key=lambda c: (-c.confidence, -c.count, c.name))
    people = [c for c in found if c.kind == "person"][:MAX_PEOPLE]
    projects = [c for c in found if c.kind == "project"][:MAX_PROJECTS]
    return [*people, *projects, *(c for c in found if c.kind == "uncertain")]


def _judged(sighting: Sighting) -> Candidate:
    inside = 0 if sighting.placed > _PLACED * sighting.count else sighting.inside
    kind, confidence = classify(sighting.signals, sighting.count, inside)
    name = sighting.shown.most_common(1)[0][0]
    return Candidate(name, kind, confidence, sighting.count, tuple(sorted(sighting.signals)))


def _row() -> re.Pattern[str]:
    """Match one to four capitalised words in a row, particles between them allowed."""
    particles = "|".join(sorted(shared().particles))
    joint = rf"(?:[ \-](?:(?:{particles})[ ]){{0,2}}|[ ][{_UPPER}]\.[ ])"
    return re.compile(
        rf"(?<![\w\u0300-\u036f@/\\.#$]){_PART}(?:{joint}{_PART}){{0,3}}(?![\w\u0300-\u036f]|['’]t\b)"
    )


_ROW = _row()


def _sightings(texts: Sequence[str], words: Locale, sample: int) -> dict[str, Sighting]:
    """Count the capitalised words of all texts; those that are common words are left out."""
    found: dict[str, Sighting] = {}
    small: Counter[str] = Counter()
    for number, text in enumerate(texts):
        small.update(filter(str.islower, WORD.findall(text)))
        for row in _ROW.finditer(text):
            for start, end in _names_in(text, row.start(), row.end(), words):
                name = text[start:end]
                key = " ".join(map(fold, WORD.findall(name)))
                sighting = found.setdefault(key, Sighting())
                sighting.shown[name] += 1
                sighting.see(number, start, end, sample)
                context = Context(text, start, end)
                sighting.inside += not context.initial
                sighting.placed += context.before in words.place_before
                sighting.determined += (
                    context.before in words.determiners or _NUMBERED.match(context.tail) is not None
                )
    common = Counter[str]()
    for word, count in small.items():
        common[fold(word)] += count
    return {key: s for key, s in found.items() if _may_be_name(key, s, common, words)}


def _names_in(text: str, start: int, end: int, words: Locale) -> Iterator[tuple[int, int]]:
    """Cut a row of capitalised words at those that are no part of a name."""
    first: int | None = None
    last = start
    for found in WORD.finditer(text, start, end):
        particle = found[0].islower()
        if not particle and (fold(found[0]) in words.stopwords or fold(found[0]) in words.honorifics):
            if first is not None:
                yield first, last
            first = None
            continue
        if first is None:
            if particle:
                continue
            first = found.start()
        if not particle:
            last = found.end()
    if first is not None:
        yield first, last


def _may_be_name(key: str, sighting: Sighting, common: Counter[str], words: Locale) -> bool:
    if sighting.count < MIN_OCCURRENCES or len(key) < 2:
        return False
    if " " in key:
        return True
    if key in words.calendar or key in shared().technologies or key in shared().roles:
        return False
    if sighting.determined > _DETERMINED * sighting.count and not _camel(sighting):
        return False
    return common[key] < sighting.count or key in words.ambiguous


def _camel(sighting: Sighting) -> bool:
    name = sighting.shown.most_common(1)[0][0]
    return any(c.isupper() for c in name[1:])


def _score(texts: Sequence[str], sighting: Sighting, words: Locale) -> bool:
    """Collect the signals around a name; always true, so that it fits a filter."""
    dialogue = 0
    for number, start, end in sighting.places:
        text = texts[number]
        context = Context(text, start, end)
        dialogue += context.speaks
        sighting.signals.update(_person_signals(text, start, end, context, words))
        sighting.signals.update(_project_signals(context, words))
    if dialogue >= 2:
        sighting.signals["dialogue"] += dialogue
    return True


def _person_signals(text: str, start: int, end: int, context: Context, words: Locale) -> Iterator[str]:
    if context.after in words.person_verbs or context.before in words.verbs_before:
        yield "verb"
    if context.before in words.honorifics or context.addressed in words.greetings:
        yield "address"
    if not words.pronouns.isdisjoint(map(fold, WORD.findall(_lines_around(text, start, end)))):
        yield "pronoun"


def _project_signals(context: Context, words: Locale) -> Iterator[str]:
    if context.before in words.project_before or context.after in words.project_after:
        yield "action"
    if _VERSION.match(context.tail):
        yield "version"
    if _FILE.match(context.tail) or context.head[-1:] in ("`", "/"):
        yield "file"


def _lines_around(text: str, start: int, end: int) -> str:
    """Return the two lines before and after, within reach."""
    before = text[max(0, start - _NEARBY) : start].split("\n")[-3:]
    after = text[end : end + _NEARBY].split("\n")[:3]
    return "\n".join(before) + "\n" + "\n".join(after)
