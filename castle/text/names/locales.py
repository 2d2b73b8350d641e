"""What each language knows about names: its stopwords, verbs, honorifics, months and doubtful words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from castle.errors import ConfigError
from castle.text.names.scripts import fold

Style = Literal["cased", "uncased", "han", "kana", "hangul"]

_NEAR = {"pt": "pt-br", "zh": "zh-cn", "zh-hans": "zh-cn", "pt-pt": "pt-br"}


@dataclass(frozen=True, slots=True)
class Locale:
    """The words of one language, in the form in which words are compared (``scripts.fold``).

    ``style`` says how its names are recognised. ``nouns_capitalised``: a capital says nothing of a name.
    ``person_before``: a capitalised word after one of these, inside a sentence, may well be a person.
    ``common_after``: a doubtful word before one of these, at the start of a sentence, is no name.
    ``calendar_before``: so is a month or weekday after one of these. ``verb_like``: what is a verb when a
    name follows it ("Will Marta come"). ``place_before``: a name after one of these is likely a place.
    """

    code: str
    style: Style = "cased"
    nouns_capitalised: bool = False
    stopwords: frozenset[str] = frozenset()
    person_verbs: frozenset[str] = frozenset()
    verbs_before: frozenset[str] = frozenset()
    person_before: frozenset[str] = frozenset()
    greetings: frozenset[str] = frozenset()
    honorifics: frozenset[str] = frozenset()
    honorifics_after: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    particles: frozenset[str] = frozenset()
    verbs_after: frozenset[str] = frozenset()
    surnames: frozenset[str] = frozenset()
    months: frozenset[str] = frozenset()
    weekdays: frozenset[str] = frozenset()
    ambiguous: frozenset[str] = frozenset()
    common_after: frozenset[str] = frozenset()
    calendar_before: frozenset[str] = frozenset()
    verb_like: frozenset[str] = frozenset()
    place_before: frozenset[str] = frozenset()
    project_before: frozenset[str] = frozenset()
    project_after: frozenset[str] = frozenset()

    @property
    def calendar(self) -> frozenset[str]:
        """Months and weekdays."""
        return self.months | self.weekdays


@dataclass(frozen=True, slots=True)
class Shared:
    """Words of no language: technologies, roles that are no people, particles inside names."""

    technologies: frozenset[str]
    roles: frozenset[str]
    particles: frozenset[str]


def languages() -> list[str]:
    """Return the codes of the languages there is data for."""
    names = (entry.name for entry in (files(__package__) / "data").iterdir())
    return sorted(name.removesuffix(".json") for name in names if name != "shared.json")


def canonical(code: str) -> str:
    """Return the code under which a language is known; raises ConfigError for one without data."""
    wanted = code.strip().lower().replace("_", "-")
    known = languages()
    for candidate in (wanted, _NEAR.get(wanted, ""), wanted.partition("-")[0]):
        if candidate in known:
            return candidate
    near = _NEAR.get(wanted.partition("-")[0], "")
    if near:
        return near
    raise ConfigError(f"entity_languages: there is no data for {code!r}, only for {', '.join(known)}")


def locales(codes: Iterable[str]) -> tuple[Locale, ...]:
    """Return the data of languages, each once, in the order given; raises ConfigError."""
    return tuple(locale(code) for code in dict.fromkeys(canonical(code) for code in codes))


@cache
def locale(code: str) -> Locale:
    """Return the data of a language by its canonical code."""
    read = _read(f"{code}.json")
    sets = {f.name for f in fields(Locale) if f.name not in ("code", "style", "nouns_capitalised")}
    values: dict[str, Any] = {
        name: frozenset(map(fold, value.split())) if name in sets else value for name, value in read.items()
    }
    return Locale(**values)


@cache
def merged(codes: tuple[str, ...]) -> Locale:
    """Return the data of several languages as one, for text of which only that is known."""
    found = locales(codes)
    sets: dict[str, Any] = {
        f.name: frozenset().union(*(getattr(item, f.name) for item in found))
        for f in fields(Locale)
        if f.name not in ("code", "style", "nouns_capitalised")
    }
    capitalised = any(item.nouns_capitalised for item in found)
    return Locale(",".join(item.code for item in found), nouns_capitalised=capitalised, **sets)


@cache
def shared() -> Shared:
    """Return the words of no language."""
    return Shared(**{name: frozenset(value.split()) for name, value in _read("shared.json").items()})


@cache
def ambiguous_words(codes: tuple[str, ...]) -> frozenset[str]:
    """Return the words that may be a name or not: those each language lists, its months and weekdays."""
    known = merged(codes)
    return known.ambiguous | known.calendar


def _read(name: str) -> dict[str, str]:
    text = (files(__package__) / "data" / name).read_text(encoding="utf-8")
    read: dict[str, str] = json.loads(text)
    return read
