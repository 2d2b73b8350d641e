"""The words that times are written with, and a question cut into them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from castle.text.holidays import first_words, telling_words
from castle.text.names.scripts import fold, word_set
from castle.text.stems import languages_of
from castle.text.words import words

UNITS = ("minute", "hour", "part", "day", "week", "weekend", "month", "year", "decade")
"""The units of time; a ``part`` is that of a day."""

LARGEST = 9999

_TOKEN = re.compile(
    r"(?P<date>(?<![\w./-])(?:\d{4}-\d\d?-\d\d?|\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4}|\d{4}-\d\d)"
    r"(?=T\d|(?![\w/-]|\.\w)))"
    r"|(?P<cjk>(?<!\d)\d{4}年(?:\d\d?月(?:\d\d?日)?)?)"
    r"|(?P<number>(?<!\w)(?<!\d[.,:])\d{1,6}(?:st|nd|rd|th|er|re|º|ª)?(?![\w%]|[.,:]\d))"
    r"|(?P<word>(?<![\w])(?:[Ii]l\s+y\s+a|[Aa]vant-hier|[^\W\d_]+)(?!\w))"
)
_FIGURES = re.compile(r"\d{4}|\d(?:st|nd|rd|th)")
_ANCHORS = frozenset({"month", "short_month", "weekday", "season", "unit", "day", "holiday"})
_JOINT = re.compile(r"[ \t\n]{0,2}[,.'’/-]?[ \t\n]{0,2}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number or date at ``[start, end)``; ``means`` gives a value for each class it belongs to."""

    start: int
    end: int
    text: str
    means: Mapping[str, int]
    number: int | None = None
    ordinal: bool = False
    date: str = ""

    @property
    def anchor(self) -> bool:
        """Whether a time may be made of it: prepositions and small numbers alone make none."""
        figures = self.date or self.ordinal or (self.number or 0) > 999
        return bool(figures) or not _ANCHORS.isdisjoint(self.means)

    @property
    def plain(self) -> bool:
        """Whether no time begins with it."""
        return not (self.means or self.date or self.number is not None)

    @property
    def capital(self) -> bool:
        """Whether it is written with a capital."""
        return self.text[:1].isupper()


def clauses(text: str) -> Iterator[list[Token]]:
    """Cut a text into runs of tokens with nothing but blanks, commas, stops, hyphens and the like between.

    Runs of which no time can be made are left out.
    """
    # Most texts speak of no time, and a search looks through hundreds.
    if _FIGURES.search(text) is None and _anchoring().isdisjoint(word_set(fold(text))):
        return
    known = vocabulary()
    spoken = _spoken_in(text)
    run: list[Token] = []
    for match in _TOKEN.finditer(text):
        token = _token(match, known, spoken)
        if run and _JOINT.fullmatch(text, run[-1].end, token.start) is None:
            if any(token.anchor for token in run):
                yield run
            run = []
        run.append(token)
    if any(token.anchor for token in run):
        yield run


def _token(match: re.Match[str], known: Mapping[str, Mapping[str, int]], spoken: Mapping[str, int]) -> Token:
    written, kind = match[0], match.lastgroup
    start, end = match.span()
    if kind == "number":
        digits = written.rstrip("stndrhe ºª")
        return Token(start, end, written, {}, int(digits), digits != written)
    if kind != "word":
        return Token(start, end, written, {}, date=written)
    folded = "_".join(fold(written).split())
    means = known.get(folded, {})
    if folded in spoken:
        means = {**means, "day": spoken[folded]}
    return Token(start, end, written, means)


@cache
def vocabulary() -> Mapping[str, Mapping[str, int]]:
    """Return what each word of any language can mean, by class."""
    known: dict[str, dict[str, int]] = {}
    named = [("holiday_begins", word, 1) for word in first_words()]
    named += [("holiday", word, 1) for word in telling_words()]
    for kind, written, value in (*_meanings(), *named):
        for word in written.split():
            known.setdefault(word, {}).setdefault(kind, value)
    return known


def _meanings() -> Iterator[tuple[str, str, int]]:
    """Give each class with its words and the value that these have in it."""
    for language in _data().values():
        for kind, value in language.items():
            if isinstance(value, str):
                yield kind, value, 1
            elif isinstance(value, list):
                first = 0 if kind in ("weekdays", "numbers", "seasons") else 1
                for at, written in enumerate(value, start=first):
                    yield kind.removesuffix("s"), written, at
            elif kind == "units":
                for name, written in value.items():
                    yield "unit", written, UNITS.index(name)
            elif kind == "days":
                for offset, written in value.items():
                    yield "day", written, int(offset)


@cache
def _anchoring() -> frozenset[str]:
    """Return the words that a time can be made of."""
    means = {word for word, classes in vocabulary().items() if not _ANCHORS.isdisjoint(classes)}
    return frozenset(means | set(_if_spoken()))


def _spoken_in(text: str) -> Mapping[str, int]:
    """Return the words that are a day only if a text is of their language."""
    if _if_spoken().keys().isdisjoint(word_set(fold(text))):
        return {}
    tokens = words(text)
    there = {word: found for word, found in _if_spoken().items() if word in tokens}
    codes = languages_of(tokens) if there else []
    return {word: value for word, (code, value) in there.items() if code in codes}


@cache
def _if_spoken() -> Mapping[str, tuple[str, int]]:
    """Return the days whose word is another one in another language, with their own language."""
    return {
        word: (code, int(offset))
        for code, language in _data().items()
        for offset, written in language.get("days_if_spoken", {}).items()
        for word in written.split()
    }


@cache
def _data() -> Mapping[str, Mapping[str, Any]]:
    text = (files("castle.text") / "data" / "when.json").read_text(encoding="utf-8")
    read: dict[str, dict[str, Any]] = json.loads(text)
    return read
