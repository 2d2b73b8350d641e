"""Noticing names where no capital marks them: Chinese, Japanese, Korean and Hindi.

A name is what stands with a title (王芳老师, 田中さん, 김민수 씨, सुनीता जी), before a verb of speaking, or
before a colon at the start of a line, three times at least and in two of these ways or with a title.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from castle.text.names.detect import MIN_OCCURRENCES, Candidate
from castle.text.names.locales import Locale, locale
from castle.text.names.scripts import HAN, HANGUL, KATAKANA, LETTER

_SPEAKER = r"(?:^|\n)[ \t>*\-\[]{0,6}"
_COLON = r"[*\]]{0,3}[ ]?[:：]"
_DEVANAGARI = "\u0900-\u0963\u0971-\u097f"
_TITLED, _TOLD, _SPOKEN = "title", "verb", "dialogue"
_COUNTED = 100
_WEIGHTS = {_TITLED: 4, _TOLD: 2, _SPOKEN: 3}


def detect_unspaced(texts: Sequence[str], words: Locale) -> list[Candidate]:
    """Return the people noticed in texts of a language without capitals."""
    signals: dict[str, Counter[str]] = {}
    for text in texts:
        if not text.isascii():
            for name, signal in _signals(text, words):
                signals.setdefault(name, Counter())[signal] += 1
    scored = sorted(((_score(seen), name) for name, seen in signals.items()), reverse=True)
    found = []
    for score, name in scored[:_COUNTED]:
        seen = signals[name]
        if score < 5 or (len(seen) < 2 and not seen[_TITLED]):
            continue
        if name in words.ambiguous and seen[_TITLED] < 2:
            continue
        count = sum(text.count(name) for text in texts)
        if count >= MIN_OCCURRENCES:
            confidence = min(0.95, 0.6 + 0.02 * score + 0.1 * len(seen))
            found.append(Candidate(name, "person", confidence, count, tuple(sorted(seen))))
    return found


def _score(seen: Counter[str]) -> int:
    return sum(_WEIGHTS[signal] * number for signal, number in seen.items())


def _signals(text: str, words: Locale) -> Iterator[tuple[str, str]]:
    for signal, pattern in _patterns(words.code):
        for match in pattern.finditer(text):
            name = match[1]
            if _plausible(name, words):
                yield name, signal


def _plausible(name: str, words: Locale) -> bool:
    if name in words.stopwords or name in words.calendar or name in words.pronouns:
        return False
    return words.style != "han" or name[:2] not in words.stopwords


@cache
def _patterns(code: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    words = locale(code)
    titles = _either(words.honorifics_after)
    verbs = _either(words.verbs_after)
    if words.style == "han":
        name = rf"((?:{_either(words.surnames)})[{HAN}]{{1,2}}?)"
        whole = rf"((?:{_either(words.surnames)})[{HAN}]{{1,2}})"
        rules = {_TITLED: rf"{name}(?:{titles})", _TOLD: rf"{name}(?:{verbs})"}
    elif words.style == "kana":
        name = rf"((?<![{HAN}])[{HAN}]{{1,4}}?|(?<![{KATAKANA}])[{KATAKANA}]{{2,10}})"
        whole = rf"([{HAN}]{{2,5}}|[{KATAKANA}]{{2,10}})"
        rules = {_TITLED: rf"{name}(?:{titles})", _TOLD: rf"{name}(?:は|が)(?:{verbs})"}
    elif words.style == "hangul":
        name = rf"(?<![{HANGUL}])((?:{_either(words.surnames)})[{HANGUL}]{{1,2}})"
        whole = name
        rules = {
            _TITLED: rf"{name}[ ]?(?:{titles})(?:{_either(words.particles)}|(?![{HANGUL}]))",
            _TOLD: rf"{name}(?:은|는|이|가)[ ](?:{verbs})",
        }
    else:
        word = rf"[{_DEVANAGARI}]{{2,20}}"
        edge = rf"(?<![{_DEVANAGARI}])"
        name = rf"{edge}({word}(?:[ ]{word})?)"
        whole = name
        single = rf"{edge}({word})"
        before = _either(words.honorifics)
        rules = {
            _TITLED: rf"{single}[ ](?:{titles})(?![{_DEVANAGARI}])",
            _TOLD: rf"{single}[ ](?:{_either(words.particles)})[ ](?:{LETTER}|[ ]){{0,20}}?(?:{verbs})",
            "before": rf"{edge}(?:{before})\.?[ ]({word})",
        }
    rules[_SPOKEN] = rf"{_SPEAKER}{whole}{_COLON}"
    return tuple((_TITLED if kind == "before" else kind, re.compile(rule)) for kind, rule in rules.items())


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))
