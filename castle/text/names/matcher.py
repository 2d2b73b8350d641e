"""Finding known names in a text: whole words, by the rules of each script, in time linear in the text.

A text is cut into words once; only words that begin a known name are looked at again. A word that was seen to
begin none is remembered, so that ordinary text costs one set difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from castle.text.names.context import Context, Doubt
from castle.text.names.locales import locale, merged
from castle.text.names.near import nearly
from castle.text.names.scripts import (
    HAN,
    KANA,
    KATAKANA,
    WORD,
    capital,
    fold,
    occurrences,
    script_of,
    word_set,
)

FUZZY_FROM = 6
"""Letters from which a name is found although one of them is wrong."""

_REMEMBERED = 200_000
_LONGEST_WORD = 60
_GAP = re.compile(r"[ \t]?[-_'’·/.][ \t]?|[ \t\u00a0]{0,2}\n[ \t\u00a0]{0,2}|[ \t\u00a0]{1,3}")
_UNSPACED = re.compile(f"[{HAN}{KANA}]{{2,}}(?:[・＝][{KATAKANA}]+)*")
_KATAKANA = re.compile(f"[{KATAKANA}]")
_ENDINGS = "а у ю я е ы и ой ей ою ею ом ем ём ам ям ах ях ов ев ами ями".split()


@dataclass(frozen=True, slots=True)
class Name:
    """One way to write a known entity; ``ambiguous`` needs evidence from the words around it."""

    entity: str
    shown: str
    person: bool
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A name at ``[start, end)`` of a text; ``exact`` is false where one letter is wrong."""

    entity: str
    start: int
    end: int
    text: str
    exact: bool = True


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A name as the words it is made of; each word is given in all its forms."""

    name: Name
    words: tuple[str, ...]
    forms: tuple[frozenset[str], ...]
    needs_capital: bool


class Matcher:
    """Finds a set of names; ``codes`` are the languages whose words decide about doubtful ones."""

    def __init__(self, names: Iterable[Name], codes: Sequence[str] = ("en",)) -> None:
        self._first: dict[str, list[_Pattern]] = {}
        self._near: dict[str, list[_Pattern]] = {}
        self._syllables: dict[str, list[Name]] = {}
        self._unspaced: dict[str, list[Name]] = {}
        self._dull: set[str] = set()
        self._words = merged(tuple(codes))
        self._doubt = Doubt(self._words)
        self._particles = locale("ko").particles | locale("ko").honorifics_after
        for name in names:
            self._add(name)

    def find(self, text: str, *, any_case: bool = False) -> list[Match]:
        """Return where the names stand, in order.

        ``any_case`` is for queries, in which few people write capitals.
        """
        found: list[Match] = []
        for word in word_set(text) - self._dull:
            if self._tells(word):
                found += self._spaced(text, word, any_case)
        if self._unspaced and not text.isascii():
            found += self._in_runs(text)
        found.sort(key=lambda match: (match.start, -match.end, match.entity))
        return found

    def _add(self, name: Name) -> None:
        script = script_of(name.shown)
        shown = WORD.findall(name.shown)
        if not shown or (script in ("han", "kana", "hangul") and len(name.shown) < 2):
            return
        if script in ("han", "kana"):
            whole = replace(name, shown="".join(name.shown.split()))
            self._unspaced.setdefault(whole.shown[:2], []).append(whole)
            return
        if script == "hangul" and len(shown) == 1:
            self._syllables.setdefault(name.shown[:2], []).append(name)
            return
        words = tuple(map(fold, shown))
        forms = tuple(_forms(word, name) for word in words)
        cased = script == "cased" and name.person and len(words) == 1
        pattern = _Pattern(name, words, forms, cased and capital(shown[0]))
        for form in forms[0]:
            self._first.setdefault(form, []).append(pattern)
        if name.person and not name.ambiguous and len(words[0]) >= FUZZY_FROM and script == "cased":
            half = len(words[0]) // 2
            for key in (words[0][:half], "-" + words[0][half + 1 :]):
                self._near.setdefault(key, []).append(pattern)

    def _tells(self, word: str) -> bool:
        """Whether a word may begin a name; one that does not is remembered."""
        folded = fold(word)
        if folded in self._first or (self._syllables and word[:2] in self._syllables):
            return True
        if self._near and any(True for _ in self._nearly(folded)):
            return True
        if len(word) <= _LONGEST_WORD:
            if len(self._dull) >= _REMEMBERED:
                self._dull = set()
            self._dull.add(word)
        return False

    def _nearly(self, folded: str) -> Iterator[_Pattern]:
        """Yield names whose first word has one letter other than this word."""
        size = len(folded)
        if size < FUZZY_FROM or size > _LONGEST_WORD or folded in self._words.stopwords:
            return
        keys = {folded[: length // 2] for length in (size - 1, size, size + 1)}
        keys |= {"-" + folded[size - (length - length // 2 - 1) :] for length in (size - 1, size, size + 1)}
        seen: set[int] = set()
        for key in keys:
            for pattern in self._near.get(key, ()):
                if id(pattern) not in seen and nearly(pattern.words[0], folded):
                    seen.add(id(pattern))
                    yield pattern

    def _spaced(self, text: str, word: str, any_case: bool) -> Iterator[Match]:
        """Find the names that begin with a word of the text."""
        folded = fold(word)
        exact = self._first.get(folded, ())
        near = [] if exact or not (any_case or capital(word)) else list(self._nearly(folded))
        for start, end in occurrences(word, text):
            if word[:2] in self._syllables:
                yield from self._syllabic(word, start)
            for pattern in exact:
                last = _reaches(text, end, pattern)
                if last is not None and self._allowed(text, pattern, word, start, last, any_case):
                    yield Match(pattern.name.entity, start, last, text[start:last])
            for pattern in near:
                last = _reaches(text, end, pattern)
                if last is not None:
                    yield Match(pattern.name.entity, start, last, text[start:last], exact=False)

    def _allowed(self, text: str, pattern: _Pattern, word: str, start: int, end: int, any_case: bool) -> bool:
        name = pattern.name
        if not name.ambiguous:
            return any_case or not pattern.needs_capital or capital(word)
        context = Context(text, start, end)
        if not name.person:
            return _is_code(context) or bool(
                {context.after, context.before} & (self._words.project_after | self._words.project_before)
            )
        return (capital(word) or script_of(word) != "cased") and self._doubt.is_person(context)

    def _syllabic(self, word: str, start: int) -> Iterator[Match]:
        """Find Korean names, which particles and titles are written together with."""
        for name in self._syllables[word[:2]]:
            rest = word[len(name.shown) :]
            if word.startswith(name.shown) and (not rest or self._trails(rest)):
                if name.ambiguous and not (rest and self._titled(rest)):
                    continue
                yield Match(name.entity, start, start + len(name.shown), name.shown)

    def _trails(self, rest: str) -> bool:
        if rest in self._particles:
            return True
        return any(rest.startswith(title) and rest[len(title) :] in self._particles for title in _titles())

    @staticmethod
    def _titled(rest: str) -> bool:
        return any(rest.startswith(title) for title in _titles())

    def _in_runs(self, text: str) -> Iterator[Match]:
        """Find names in scripts without spaces; a longer known name hides a shorter one inside it."""
        for run in _UNSPACED.finditer(text):
            at, end = run.span()
            while at < end - 1:
                best: Name | None = None
                for name in self._unspaced.get(text[at : at + 2], ()):
                    longer = best is None or len(name.shown) > len(best.shown)
                    if longer and text.startswith(name.shown, at) and self._bounded(text, at, name):
                        best = name
                if best is None:
                    at += 1
                    continue
                yield Match(best.entity, at, at + len(best.shown), best.shown)
                at += len(best.shown)

    def _bounded(self, text: str, at: int, name: Name) -> bool:
        end = at + len(name.shown)
        for inner, outer in ((name.shown[0], text[at - 1 : at]), (name.shown[-1], text[end : end + 1])):
            if outer and _KATAKANA.match(inner) and _KATAKANA.match(outer):
                return False
        if not name.ambiguous:
            return True
        after = text[end : end + 6]
        return any(after.startswith(title) for code in ("zh-cn", "ja") for title in _speech(code))


def _speech(code: str) -> frozenset[str]:
    return locale(code).honorifics_after | locale(code).verbs_after


def _titles() -> frozenset[str]:
    return locale("ko").honorifics_after


def _forms(word: str, name: Name) -> frozenset[str]:
    """Return a word with its endings, for the names of people in Cyrillic."""
    if not name.person or name.ambiguous or not "\u0400" <= word[0] <= "\u04ff" or len(word) < 3:
        return frozenset((word,))
    stem = word[:-1] if word[-1] in "аяйьеио" else word
    if len(stem) < 3:
        return frozenset((word,))
    return frozenset((word, *(stem + fold(ending) for ending in _ENDINGS)))


def _reaches(text: str, end: int, pattern: _Pattern) -> int | None:
    """Return where a name ends whose first word ends at ``end``, None when other words follow."""
    for forms in pattern.forms[1:]:
        gap = _GAP.match(text, end)
        word = WORD.match(text, gap.end()) if gap is not None and gap.end() > end else None
        if word is None or fold(word[0]) not in forms:
            return None
        end = word.end()
    return end


def _is_code(context: Context) -> bool:
    return context.head[-1:] in ("`", "/", "@") or context.tail[:1] in ("`", "/")
