"""Letters and words as names need them: word boundaries right for each script, and one form to compare by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Literal

Script = Literal["cased", "hangul", "han", "kana", "other"]

# Vowel signs and accents are no letters to ``re``; without them a word of Devanagari falls apart.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u200c\u200d"
)
LETTER = rf"[^\W_]|[{_MARKS}]"
WORD = re.compile(rf"(?:[^\W_]++|[{_MARKS}]++)++")
"""One word: letters, digits and the marks on them; ``_``, hyphens and apostrophes separate words."""

_BREAKS = {code: " " for code in range(128) if not chr(code).isalnum()}

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005"
KANA = "\u3041-\u3096\u30a1-\u30fa\u30fc\uff66-\uff9f"
KATAKANA = "\u30a1-\u30fa\u30fc\uff66-\uff9f"
HANGUL = "\uac00-\ud7a3"

_HANGUL = re.compile(f"[{HANGUL}]")
_KANA = re.compile(f"[{KANA}]")
_HAN = re.compile(f"[{HAN}]")


def word_set(text: str) -> set[str]:
    """Return the different words of a text."""
    return set(text.translate(_BREAKS).split() if text.isascii() else WORD.findall(text))


def occurrences(word: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a word stands in a text on its own."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (WORD.match(text, end) or (start and WORD.match(text, start - 1))):
            yield start, end
        start = text.find(word, end)


def script_of(word: str) -> Script:
    """Return the script that decides how a word is bounded."""
    if word.isascii():
        return "cased" if any(c.isalpha() for c in word) else "other"
    if _HANGUL.search(word):
        return "hangul"
    if _KANA.search(word):
        return "kana"
    if _HAN.search(word):
        return "han"
    return "cased" if any(c.lower() != c.upper() for c in word) else "other"


def fold(word: str) -> str:
    """Return the form in which words are compared: case, Latin accents and ``ё`` do not count."""
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFKC", word).casefold().translate(_plain())
    return plain.replace("\u0307", "")


def folded_words(text: str) -> list[str]:
    """Return the words of a text in the form in which they are compared."""
    return [fold(word) for word in WORD.findall(text)]


def capital(word: str) -> bool:
    """Whether a word of a script with two cases begins with a capital."""
    return word[0].isupper() or word[0].istitle()


@cache
def letters(upper: bool) -> str:
    """Return the capital or the small letters of Latin, Greek and Cyrillic, for a character class."""
    codes = [*range(0x41, 0x530), *range(0x1E00, 0x1F00)]
    return "".join(c for c in map(chr, codes) if (c.isupper() if upper else c.islower()))


@cache
def _plain() -> dict[int, str]:
    table = {0x451: "\u0435"}
    for code in [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]:
        apart = unicodedata.normalize("NFD", chr(code).casefold())
        if apart[0].isascii() and apart[0].isalpha():
            table[code] = apart[0]
    table.update(zip(map(ord, "øđłħŧı"), "odlhti", strict=True))
    table.update({ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th", ord("ð"): "d"})
    return table
