"""Cutting a long line into pieces: after sentences, at white space, at signs, between characters.

Where a piece ends depends on the text near that place, so that a change moves few of the cuts after it.
"""

from __future__ import annotations

import re
import unicodedata

from castle.text import structure

Piece = tuple[str, int]
"""A piece of text and the strength of the boundary before it."""

_SENTENCE = re.compile(
    r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_]*[ \t]+"
    r"|[。！？；｡]+[”’」』）)\"']*[ \t\u3000]*|\r(?!\n)|[\u2028\u2029\f]"
)
_LEAST_SENTENCE = 12
_FINE = 100
_SPACE = re.compile(r"[ \t\u3000](?![ \t\u3000])")
_CLAUSE_ENDS = frozenset(",;:)]}|—–")
_SIGNS = frozenset(",;:/.&=<>(){}[]|-+#@!?'\"\\~，、；：・·।။፣،")


def cut(text: str, most: int) -> list[Piece]:
    """Cut a text after its sentences, and sentences of more than ``most`` characters finer.

    The strength of the first piece is 0: it is not for this function to say.
    """
    pieces: list[Piece] = []
    start, strength, last = 0, 0, 0
    for match in _SENTENCE.finditer(text):
        end = match.end()
        near = match.start() - last < _LEAST_SENTENCE
        last = end
        if near or end == len(text) or is_joined(text, end):
            continue
        pieces.extend(_finer(text[start:end], most, strength))
        strength = structure.LINE if text[end - 1] == "\r" else structure.SENTENCE
        start = end
    pieces.extend(_finer(text[start:], most, strength))
    return pieces


def _finer(text: str, most: int, strength: int) -> list[Piece]:
    if len(text) <= most:
        return [(text, strength)]
    return fine(text, min(most, _FINE), strength)


def fine(text: str, most: int, strength: int = 0) -> list[Piece]:
    r"""Cut a text into pieces of at most ``most`` characters; a ``\r\n`` stays whole."""
    pieces: list[Piece] = []
    start = 0
    plain = text.isascii()
    while len(text) - start > most:
        end, next_strength = _place(text, start + max(1, most // 3), start + most, plain)
        if text[end - 1 : end + 1] == "\r\n":
            end += -1 if end - 1 > start else 1
        if end >= len(text):
            break
        pieces.append((text[start:end], strength))
        start, strength = end, next_strength
    pieces.append((text[start:], strength))
    return pieces


def _place(text: str, low: int, high: int, plain: bool) -> tuple[int, int]:
    """Choose where to cut in ``[low, high]``; among equals, by what follows the cut."""
    places = [match.end() for match in _SPACE.finditer(text, low - 1, high)]
    strength = structure.SPACE
    clauses = [at for at in places if at > 1 and text[at - 2] in _CLAUSE_ENDS]
    if clauses:
        places, strength = clauses, structure.CLAUSE
    if not places:
        places = [at for at in range(low, high + 1) if text[at - 1] in _SIGNS and text[at] not in _SIGNS]
        strength = structure.SIGN
    if places and not plain:
        places = [at for at in places if not is_joined(text, at)]
    if not places:
        places = list(range(low, high + 1))
        strength = structure.CHARACTER
        if not plain:
            places = [at for at in places if not is_joined(text, at)]
    if not places:
        return high, structure.INSIDE
    return min(places, key=lambda at: (text[at : at + 8], -at)), strength


def is_joined(text: str, at: int) -> bool:
    """Tell whether the characters around ``at`` are one to the reader, or halves of one."""
    before, after = text[at - 1], text[at]
    if after < "\u0300":
        return before == "\u200d" or (before == "\r" and after == "\n")
    if before == "\u200d" or after in "\u200c\u200d" or unicodedata.category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    return any(
        first[0] <= before <= first[1] and second[0] <= after <= second[1] for first, second in _TOGETHER
    )


_TOGETHER = (
    (("\U0001f1e6", "\U0001f1ff"), ("\U0001f1e6", "\U0001f1ff")),  # the two letters of a flag
    (("\ud800", "\udbff"), ("\udc00", "\udfff")),
    (("\u1100", "\u1175"), ("\u1161", "\u11ff")),  # the parts of a Korean syllable
    (("\uac00", "\ud7a3"), ("\u1161", "\u11ff")),
    (("\u1161", "\u11ff"), ("\u1161", "\u11ff")),
)
