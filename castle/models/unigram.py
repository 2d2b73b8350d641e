"""The unigram tokens of XLM-RoBERTa: the cut of a text into pieces whose summed log probability is highest.

Written here because the library ``tokenizers`` takes three times as long and three times the memory to load a
table of 250,000 pieces. A word is cut once and then remembered.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

_SPACE_MARK = "\u2581"
_UNKNOWN_PENALTY = 10.0
_CACHED_WORDS = 50_000
_CACHED_LENGTH = 64
_SURROGATES = re.compile("[\ud800-\udfff]")


class UnigramTokenizer:
    """Turns text into the numbers of pieces.

    ``pieces`` are in the order of their numbers, ``scores`` are their log probabilities. ``unknown`` is the
    number for characters that no piece has; ``reserved`` numbers, it among them, are never found in text.
    ``normal`` maps characters to what stands for them (``str.translate``).
    """

    def __init__(
        self,
        pieces: Sequence[str],
        scores: Sequence[float],
        *,
        unknown: int,
        reserved: frozenset[int],
        normal: Mapping[int, str],
    ) -> None:
        self._pieces = {
            piece: (number, score)
            for number, (piece, score) in enumerate(zip(pieces, scores, strict=True))
            if number not in reserved
        }
        self._longest = max(map(len, self._pieces))
        self._unknown = unknown
        self._unknown_score = min(scores) - _UNKNOWN_PENALTY
        self._normal = normal
        self._words: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces; white space only separates words."""
        whole = _SURROGATES.sub("\ufffd", text)
        found: list[int] = []
        for word in unicodedata.normalize("NFC", whole).translate(self._normal).split():
            found += self._word(_SPACE_MARK + word)
        return found

    def _word(self, word: str) -> list[int]:
        known = self._words.get(word)
        if known is None:
            known = self._best(word)
            if len(word) <= _CACHED_LENGTH and len(self._words) < _CACHED_WORDS:
                self._words[word] = known
        return known

    def _best(self, word: str) -> list[int]:
        """Find the best cut by dynamic programming over the ends of pieces; runs of unknowns become one."""
        length = len(word)
        best = [0.0] + [float("-inf")] * length
        came: list[tuple[int, int]] = [(0, 0)] * (length + 1)
        for start in range(length):
            base = best[start]
            for end in range(start + 1, min(length, start + self._longest) + 1):
                found = self._pieces.get(word[start:end])
                if found is not None and base + found[1] > best[end]:
                    best[end] = base + found[1]
                    came[end] = (start, found[0])
            if base + self._unknown_score > best[start + 1]:
                best[start + 1] = base + self._unknown_score
                came[start + 1] = (start, self._unknown)
        numbers: list[int] = []
        end = length
        while end:
            end, number = came[end]
            if not (number == self._unknown and numbers and numbers[-1] == number):
                numbers.append(number)
        return numbers[::-1]
