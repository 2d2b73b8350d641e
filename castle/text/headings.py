"""The path of headings or definitions under which a place in a text stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from castle.records import SealedSpan
from castle.text.atoms import Atom
from castle.text.served import served_text

SEPARATOR = " › "
DEEPEST = 4
LONGEST = 80
MAX_TOKENS = 30
_CACHED = 1_000


class HeadingPath:
    """Follows the headings of a text. Secrets in them are masked."""

    def __init__(self, count: Callable[[Sequence[str]], Sequence[int]]) -> None:
        self._count = count
        self._open: list[tuple[int, str]] = []
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def enter(self, atom: Atom, sealed: Iterable[SealedSpan]) -> None:
        """Pass the beginning of an atom; ``sealed`` has offsets in the whole text."""
        if atom.level < 0:
            return
        while self._open and self._open[-1][0] >= atom.level:
            self._open.pop()
        if not atom.title:
            return
        start, end = atom.title_start, atom.title_start + len(atom.title)
        inside = [
            SealedSpan(max(0, span.start - start), min(end, span.end) - start, span.kind, span.tag)
            for span in sealed
            if span.start < end and span.end > start
        ]
        title = " ".join(served_text(atom.title, inside).split())
        if title:
            self._open.append((atom.level, _shortened(title, LONGEST)))

    def path(self) -> tuple[str, ...]:
        """List the headings here, outermost first: the innermost four, as far as ``MAX_TOKENS`` allows."""
        titles = tuple(title for _, title in self._open[-DEEPEST:])
        if not titles:
            return ()
        known = self._known.get(titles)
        if known is None:
            if len(self._known) >= _CACHED:
                self._known.clear()
            known = self._known[titles] = self._fitting(titles)
        return known

    def _fitting(self, titles: tuple[str, ...]) -> tuple[str, ...]:
        while self._count([SEPARATOR.join(titles)])[0] > MAX_TOKENS:
            if len(titles) > 1:
                titles = titles[1:]
            elif len(titles[0]) > 1:
                titles = (_shortened(titles[0], len(titles[0]) * 4 // 5),)
            else:
                return ()
        return titles


def _shortened(title: str, most: int) -> str:
    return title if len(title) <= most else title[: max(0, most - 1)].rstrip() + "…"
