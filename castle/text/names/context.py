"""What stands around a word, and whether that shows a doubtful one to be a person's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from castle.text.names.locales import Locale
from castle.text.names.scripts import LETTER, WORD, capital, fold

_REACH = 60
_LONGEST = 40
_FIRST = re.compile(rf"[\"'”“»)*\]]{{0,3}}([ \t\u00a0]{{1,3}})((?:{LETTER}){{1,40}})")
_BLANKS = " \t\u00a0"
_QUOTES = "\"'“„«(*["
_OPENING = " \t\u00a0\"'“„«(*_[>#-"
_ENDS = frozenset(".!?…:;\n。！？：—|")
_LINE = re.compile(r"(?:^|\n)[ \t>*_\-\[(#]{0,8}(?:\[?\d[\d:.,/ \-]{0,20}(?:[AaPp][Mm])?\]?[ \t\-]{0,3})?$")
_SPEAKS = re.compile(r"[*_\])]{0,3} ?(?:\([^)\n]{0,40}\))?[*_]{0,2}(?::[*_]{0,2}[ \t]{1,8}[^\s]|：[^\n])")
_OWNS = re.compile(r"['’][sS]\b")


class Context:
    """A word at ``[start, end)`` of a text, and what is near it; nothing is looked at before it is asked."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.word = text[start:end]
        self._whole = start < _REACH
        self.head = text[max(0, start - _REACH) : start]
        self.tail = text[end : end + _REACH]

    @cached_property
    def _before(self) -> tuple[str, bool]:
        """The word before it on the line, and whether a full stop ends that."""
        left = self.head.rstrip(_QUOTES)
        bare = left.rstrip(_BLANKS)
        if len(bare) == len(left):
            return "", False
        bare = bare.removesuffix(",")
        stopped = bare.endswith(".")
        words = WORD.findall((bare[:-1] if stopped else bare)[-_LONGEST:])
        if not words or not bare.removesuffix(".").endswith(words[-1]):
            return "", False
        return words[-1], stopped

    @cached_property
    def _after(self) -> re.Match[str] | None:
        return _FIRST.match(self.tail)

    @cached_property
    def shown_before(self) -> str:
        """The word before it on the line, as it is written."""
        return self._before[0]

    @cached_property
    def before(self) -> str:
        """The word before it on the line, folded."""
        return fold(self.shown_before) if self.shown_before else ""

    @cached_property
    def shown_after(self) -> str:
        """The word after it on the line, as it is written."""
        return self._after[2] if self._after else ""

    @cached_property
    def after(self) -> str:
        """The word after it on the line, folded."""
        return fold(self.shown_after) if self.shown_after else ""

    @cached_property
    def initial(self) -> bool:
        """Whether it stands where a sentence begins."""
        stripped = self.head.rstrip(_OPENING)
        return not stripped or stripped[-1] in _ENDS

    @cached_property
    def speaks(self) -> bool:
        """Whether it is who speaks: at the start of a line, with a colon and what is said after it."""
        if not _SPEAKS.match(self.tail):
            return False
        found = _LINE.search(self.head)
        return found is not None and (found.start() > 0 or self.head[:1] == "\n" or self._whole)

    @cached_property
    def owns(self) -> bool:
        """Whether ``'s`` follows it."""
        return bool(_OWNS.match(self.tail))

    @cached_property
    def addressed(self) -> str:
        """The word before it where only a comma or blanks lie between."""
        return "" if self._before[1] else self.before


@dataclass(frozen=True, slots=True)
class Doubt:
    """Decides whether a doubtful word is a person in its context, with the words of the given languages."""

    words: Locale

    def is_person(self, context: Context) -> bool:
        """Whether a capitalised word that may be a name or not is one here."""
        words = self.words
        folded = fold(context.word)
        calendar = folded in words.months or folded in words.weekdays
        if context.before in words.honorifics or context.addressed in words.greetings:
            return True
        if calendar and (context.before in words.calendar_before or context.tail.lstrip(" .,")[:1].isdigit()):
            return False
        if words.nouns_capitalised and context.before in words.determiners:
            return False
        if context.after in words.person_verbs or context.before in words.verbs_before:
            return True
        if calendar or not capital(context.word):
            return False
        if context.speaks:
            return True
        if context.before in words.determiners:
            return False
        if context.initial:
            return self._begins(context)
        return self._inside(context)

    def _begins(self, context: Context) -> bool:
        """Judge a word that would have its capital anyway."""
        if context.after in self.words.common_after:
            return False
        if context.owns:
            return True
        if fold(context.word) in self.words.verb_like:
            return False
        surname = context.shown_after
        known = context.after in self.words.stopwords or context.after in self.words.calendar
        return bool(surname) and capital(surname) and surname[1:].islower() and not known

    def _inside(self, context: Context) -> bool:
        """Judge a word whose capital says something, but for languages that write all nouns so."""
        words = self.words
        if context.owns:
            return True
        if words.nouns_capitalised:
            return context.before in words.person_before and context.after not in words.common_after
        lower = context.shown_before.islower()
        return lower and context.before not in words.calendar_before or context.before in words.person_before
