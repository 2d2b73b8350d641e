"""Secret detection over a text that arrives in blocks."""

from __future__ import annotations

from castle.records import SealedSpan
from castle.text.secrets import LONGEST_BLOCK, find_secrets

_WINDOW = 262_144
_BEFORE = 512
_AFTER = LONGEST_BLOCK + 4_096


class Scanner:
    """Finds the secrets of a running text, wherever its blocks are cut.

    The text is read in windows at fixed offsets, each with what stands around it, so that a secret across two
    windows is found whole. ``settled`` is the offset before which all spans are known.
    """

    def __init__(self, salt: bytes, window: int = _WINDOW) -> None:
        self._salt = salt
        self._window = window
        self._text = ""
        self._start = 0  # offset of _text in the source
        self._done = 0  # end of the last span
        self.settled = 0

    def feed(self, block: str, final: bool = False) -> list[SealedSpan]:
        """Take a block and give the spans that have become known, with offsets in the whole text."""
        self._text += block
        found: list[SealedSpan] = []
        while self._start + len(self._text) >= self.settled + self._window + _AFTER:
            self._read(self.settled + self._window, found)
        if final:
            end = self._start + len(self._text)
            while self.settled < end:
                self._read(min(end, self.settled + self._window), found)
        return found

    def _read(self, limit: int, found: list[SealedSpan]) -> None:
        """Take the spans that begin before ``limit``."""
        window = self._text[: limit + _AFTER - self._start]
        for span in find_secrets(window, self._salt):
            start, end = span.start + self._start, span.end + self._start
            if start >= self._done and self.settled <= start < limit:
                found.append(SealedSpan(start, end, span.kind, span.tag))
                self._done = end
        self.settled = limit
        drop = max(0, limit - _BEFORE - self._start)
        self._text = self._text[drop:]
        self._start += drop
