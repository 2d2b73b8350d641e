"""Names that may be one: the same but for case, accents and punctuation, or within an edit or two.

Pairs within a distance are found without comparing all with all: of a name cut into one piece more than edits
are allowed, one piece at least stands unchanged, and nearly in place, in every name that near (Li, Deng, Wang
and Feng, "PASS-JOIN", PVLDB 5(3), 2011).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

_SHORTEST_SAME = 3
_SHORTEST = 5
_SHORTEST_FOR_TWO = 10
_LONGEST = 64

_ACCENTS = frozenset(map(chr, range(0x300, 0x370)))
"""Marks that accent a letter; the marks of other scripts are vowels and stay."""

_Index = dict[tuple[int, int, str], list[str]]


def plain_name(name: str) -> str:
    """Return a name in lower case without accents, blanks and punctuation."""
    apart = unicodedata.normalize("NFKD", name.casefold())
    kept = (c for c in apart if unicodedata.category(c)[0] in "LMN" and c not in _ACCENTS)
    return unicodedata.normalize("NFC", "".join(kept))


def near_names(names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of keys whose names are near, the lower key first, and in words why."""
    variants: dict[str, list[str]] = {}
    for key, name in sorted(names.items()):
        plain = plain_name(name)
        if len(plain) >= _SHORTEST_SAME:
            variants.setdefault(plain, []).append(key)
    for keys in variants.values():
        for other in keys[1:]:
            yield keys[0], other, "they differ only in case, accents or punctuation"
    for one, other, edits in _near(sorted(variants, key=lambda plain: (len(plain), plain))):
        first, second = sorted((variants[one][0], variants[other][0]))
        yield first, second, f"they differ by {edits} letter{'' if edits == 1 else 's'}"


def _allowed(length: int) -> int:
    if not _SHORTEST <= length <= _LONGEST:
        return 0
    return 2 if length >= _SHORTEST_FOR_TWO else 1


def _near(texts: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield pairs of different texts within the distance that the shorter one allows; ``texts`` by length."""
    index: _Index = {}
    letters = {text: _letters(text) for text in texts}
    digits = {text: "".join(c for c in text if c.isdigit()) for text in texts}
    seen: set[str] = set()
    for text in texts:
        swapped = seen.intersection(_swaps(text)) if _allowed(len(text)) == 1 else set()
        for other in sorted(_candidates(index, text) | swapped):
            allowed = 2 if other in swapped else _allowed(len(other))
            # An edit takes away one letter at most and brings in one.
            if (letters[text] ^ letters[other]).bit_count() <= 2 * allowed and digits[text] == digits[other]:
                edits = distance(other, text, allowed)
                if edits <= allowed:
                    yield other, text, edits
        seen.add(text)
        for number, start, end in _pieces(len(text)):
            index.setdefault((len(text), number, text[start:end]), []).append(text)


def _letters(text: str) -> int:
    """Return a set of the characters of a text as bits, several characters sharing one."""
    bits = 0
    for c in text:
        bits |= 1 << ord(c) % 61
    return bits


def _candidates(index: _Index, text: str) -> set[str]:
    found: set[str] = set()
    for length in range(max(_SHORTEST, len(text) - 2), min(_LONGEST, len(text)) + 1):
        allowed = _allowed(length)
        if len(text) - length > allowed:
            continue
        for number, start, end in _pieces(length):
            size = end - start
            for at in range(max(0, start - allowed), min(len(text) - size, start + allowed) + 1):
                found.update(index.get((length, number, text[at : at + size]), ()))
    return found


def _pieces(length: int) -> list[tuple[int, int, int]]:
    """Cut a length into one piece more than edits are allowed: number, start, end."""
    allowed = _allowed(length)
    if not allowed:
        return []
    bounds = [length * n // (allowed + 1) for n in range(allowed + 2)]
    return [(n, bounds[n], bounds[n + 1]) for n in range(allowed + 1)]


def _swaps(text: str) -> Iterator[str]:
    for at in range(len(text) - 1):
        if text[at] != text[at + 1]:
            yield text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def distance(one: str, other: str, limit: int) -> int:
    """Return how many characters must be inserted, removed or replaced to make one text the other.

    Where it is more than ``limit``, the answer is ``limit + 1``. Only what lies within ``limit`` of the
    diagonal is computed.
    """
    beyond = limit + 1
    if abs(len(one) - len(other)) > limit:
        return beyond
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [beyond] * (len(other) + 1)
        row[0] = i
        for j in range(max(1, i - limit), min(len(other), i + limit) + 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != other[j - 1]))
        if min(row) > limit:
            return beyond
        last = row
    return min(last[-1], beyond)
