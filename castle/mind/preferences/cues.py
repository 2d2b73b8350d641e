"""The cues by which a person's words tell what they prefer, in each language that names are noticed in.

They stand in ``data/preference_cues.json``. ``*`` stands for up to four words, ``^`` for the start of a
sentence. A cue counts as whole words, in languages without blanks between them as a run of characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

CueKind = Literal["for", "against", "habit", "style", "knows", "learns"]

UNSPACED = frozenset(("ja", "zh-cn", "ko", "hi"))
_WORD = re.compile(r"\w+")
_GAP = r"\S{1,40}(?:\s\S{1,40}){0,3}?"


@dataclass(frozen=True, slots=True)
class Cue:
    """One cue: a phrase of a language."""

    language: str
    kind: CueKind
    phrase: str

    def find(self, sentence: str) -> re.Match[str] | None:
        """Return where it stands in a case-folded sentence."""
        return _pattern(self.phrase, self.language).search(sentence)


@dataclass(frozen=True, slots=True)
class Topics:
    """Words that tell what a preference is about, and pairs of those that exclude each other."""

    answering: frozenset[str]
    working: frozenset[str]
    opposites: tuple[tuple[frozenset[str], frozenset[str]], ...]


def found(sentence: str, reported: bool = False) -> Iterator[tuple[Cue, re.Match[str]]]:
    """Yield the cues in a case-folded sentence; ``reported`` adds those of what is filed about the user."""
    by_word, unspaced = _index(reported)
    here = dict.fromkeys(_WORD.findall(sentence))
    near = [cue for word in here for cue in by_word.get(word, ())]
    near += [cue for cue in unspaced if cue.phrase.removeprefix("^") in sentence]
    for cue in near:
        match = cue.find(sentence)
        if match is not None:
            yield cue, match


@cache
def _index(reported: bool) -> tuple[dict[str, list[Cue]], list[Cue]]:
    """Return the cues by the longest word of each, and those of languages that have no words to look up."""
    data = _data()
    known = [*data["cues"].items(), *([("en", data["reported"])] if reported else ())]
    by_word: dict[str, list[Cue]] = {}
    unspaced: list[Cue] = []
    for language, kinds in known:
        for kind, phrases in kinds.items():
            for cue in (Cue(language, kind, phrase) for phrase in phrases):
                if language in UNSPACED:
                    unspaced.append(cue)
                else:
                    by_word.setdefault(max(_WORD.findall(cue.phrase), key=len), []).append(cue)
    return by_word, unspaced


def is_reaction(cue: Cue, rest: str) -> bool:
    """Say whether what follows a cue shows that it is about something just said: "I like that idea"."""
    return cue.kind in ("for", "against") and _reactions(cue.language).match(rest) is not None


@cache
def _reactions(language: str) -> re.Pattern[str]:
    phrases = sorted(_data()["reactions"].get(language, ()), key=len, reverse=True)
    return re.compile(rf"\s(?:{'|'.join(map(re.escape, phrases))})(?!\w)" if phrases else r"(?!)")


@cache
def topics() -> Topics:
    """Return the words by which preferences are told apart."""
    data = _data()
    pairs = tuple((frozenset(one), frozenset(other)) for one, other in data["opposites"])
    return Topics(frozenset(data["answering"]), frozenset(data["working"]), pairs)


def linking(name: Literal["instead", "purpose"], language: str) -> tuple[str, ...]:
    """Return the words of a language that stand before what is rejected, or before what something is for."""
    return tuple(_data()[name].get(language, ()))


@cache
def _data() -> Any:
    file = files(__package__) / "data" / "preference_cues.json"
    return json.loads(file.read_text(encoding="utf-8"))


def languages() -> Iterable[str]:
    """Return the codes of the languages that there are cues for."""
    return tuple(_data()["cues"])


@cache
def _pattern(phrase: str, language: str) -> re.Pattern[str]:
    anchored, bare = phrase.startswith("^"), phrase.removeprefix("^")
    if language in UNSPACED:
        return re.compile(("^" if anchored else "") + re.escape(bare))
    words = [_GAP if word == "*" else re.escape(word) for word in bare.split()]
    start = "^" if anchored else r"(?<!\w)"
    return re.compile(start + r",?\s".join(words) + r"(?!\w)")
