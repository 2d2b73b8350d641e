"""Atoms: the least pieces of a text between which a chunk may begin.

An atom is a line with the blank lines after it, or a piece of a line too long for a chunk. How a text falls
into atoms depends on the text alone, not on how it arrives, and at every place on the text near it.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from castle.text import pieces, structure
from castle.text.structure import HEAD, Mark, Reader

SEGMENT = 16_384
"""Characters of a long line that are looked at together."""
_BLANK = 200
_LEAD_LINES = 40
_LEAD_CHARACTERS = 2_000
_SENTENCE_ENDS = frozenset(".!?。！？")


class Atom:
    """A piece of text, the strength of the boundary before it, and what it means for the headings.

    ``level`` is -1, or the depth at which headings end here; ``title`` is the heading that begins,
    ``title_start`` its offset in the source. ``tokens`` is filled in by whoever counts.
    """

    __slots__ = ("level", "start", "strength", "text", "title", "title_start", "tokens")

    def __init__(self, text: str, start: int, strength: int) -> None:
        self.text = text
        self.start = start
        self.strength = strength
        self.level = -1
        self.title = ""
        self.title_start = 0
        self.tokens = 0

    def rank(self) -> int:
        """A number that depends on the beginning of the text alone, to choose among equals."""
        return crc32(self.text[:80].encode("utf-8", "surrogatepass"))

    def parts(self, most: int) -> list[Atom]:
        """Cut the atom into pieces of about ``most`` characters; the first keeps the heading."""
        at, atoms = self.start, []
        for text, strength in pieces.cut(self.text, most):
            atoms.append(Atom(text, at, strength))
            at += len(text)
        atoms[0].strength = self.strength
        atoms[0].level, atoms[0].title, atoms[0].title_start = self.level, self.title, self.title_start
        return atoms


class Splitter:
    """Splits a text that arrives in blocks into atoms of at most ``most`` characters.

    A line longer than that is cut after its sentences, a sentence longer than ``finer`` at white space.
    """

    def __init__(self, reader: Reader, most: int, finer: int) -> None:
        self._reader = reader
        self._most = min(most, SEGMENT // 4)
        self._finer = min(finer, self._most)
        self._rest = ""  # the line that has not ended yet
        self._waiting: list[str] = []  # whole lines whose following lines are not known yet
        self._inside = False  # pieces of the line have been given out already
        self._strength = 0  # of the piece of a long line that comes next
        self._at = 0
        self._ready: list[Atom] = []
        self._lead = -1  # index in _ready of the comment that may belong to a definition
        self._lead_size = (0, 0)
        self._blank = 0  # characters of blank lines at the end of the last atom
        self._glued = False
        self._sentence = False

    def feed(self, block: str, final: bool = False) -> list[Atom]:
        """Take a block and give the atoms that cannot change any more."""
        waiting = self._waiting
        if "\n" in block:
            lines = (self._rest + block).split("\n")
            self._rest = lines.pop()
            waiting.extend(lines)
        else:
            self._rest += block
        whole = final or len(self._rest) > SEGMENT
        known = len(waiting) if whole else len(waiting) - 2
        if known > 0:
            ahead = [*waiting[1:], self._rest, "", ""]
            for line, second, third in zip(waiting[:known], ahead, ahead[1:], strict=False):
                self._line(line, "\n", second, third)
            del waiting[:known]
        if final and (self._rest or self._inside):
            self._line(self._rest, "", "", "")
            self._rest = ""
        elif whole:
            self._rest = self._long(self._rest, whole=False)
        return self._settled(final)

    def _settled(self, final: bool) -> list[Atom]:
        """Give out all atoms but the last, which may grow, and those whose strength may still rise."""
        ready = self._ready
        keep = len(ready) if final else max(0, len(ready) - 1)
        if self._lead >= 0 and not final:
            keep = min(keep, self._lead)
        self._ready = ready[keep:]
        self._lead = max(-1, self._lead - keep)
        return ready[:keep]

    def _line(self, line: str, end: str, second: str, third: str) -> None:
        if self._inside or len(line) > SEGMENT:
            self._long(line + end, whole=True)
            return
        if len(line) < _BLANK and (not line or line.isspace()):
            self._blank_line(line + end)
            return
        if len(second) > SEGMENT:
            third = ""
        self._begin(line, line + end, second[:HEAD], third[:HEAD])
        self._at += len(line) + len(end)
        if len(line) > self._most:
            last = self._ready.pop()
            self._ready.extend(last.parts(self._finer))

    def _blank_line(self, text: str) -> None:
        self._lead = -1
        if self._ready and self._blank + len(text) <= _BLANK:
            self._ready[-1].text += text
            self._blank += len(text)
        else:
            self._ready.append(Atom(text, self._at, structure.LINE))
            self._blank = len(text)
        self._at += len(text)

    def _long(self, text: str, *, whole: bool) -> str:
        """Cut a line of more than a segment; gives back what has to wait for the text after it."""
        if not self._inside:
            atom = self._begin(text, "", "", "")
            self._ready.pop()
            self._inside = True
            first: Atom | None = atom
        else:
            first = None
        start = 0
        while len(text) - start > SEGMENT:
            found = pieces.cut(text[start : start + SEGMENT], self._finer)
            start += self._add(found[:-1], first)
            self._strength, first = found[-1][1], None
        if not whole:
            return text[start:]
        if start < len(text):
            self._add(pieces.cut(text[start:], self._finer), first)
        self._inside = False
        return ""

    def _add(self, found: Iterable[pieces.Piece], first: Atom | None) -> int:
        """Append pieces of a long line; returns their length."""
        begin = self._at
        for text, strength in found:
            if first is not None:
                atom, first = first, None
                atom.text = text
            else:
                atom = Atom(text, self._at, strength or self._strength)
            self._ready.append(atom)
            self._at += len(text)
        return self._at - begin

    def _begin(self, line: str, text: str, second: str, third: str) -> Atom:
        """Append the atom of a line, as strong as its meaning makes it."""
        mark = self._reader.mark(line[:HEAD], (second, third))
        strength = mark.strength
        if strength >= structure.LINE and self._glued:
            strength = structure.GLUED
        elif strength == structure.LINE:
            if self._blank:
                strength = structure.PARAGRAPH + (0 if line[:1].isspace() else 2)
            elif self._sentence:
                strength += 2
        atom = Atom(text, self._at, strength)
        if mark.level >= 0:
            atom.level = mark.level
            if mark.title is not None:
                start, end = mark.title
                atom.title = f"{line[:HEAD]}\n{second}"[start:end]
                atom.title_start = self._at + start
        self._ready.append(atom)
        if mark.leads or self._lead >= 0:
            self._lead_on(mark, atom, len(line))
        self._blank = 0
        self._glued = mark.glued
        self._sentence = line.rstrip()[-1:] in _SENTENCE_ENDS
        return atom

    def _lead_on(self, mark: Mark, atom: Atom, size: int) -> None:
        """Begin or carry on a comment; where a definition follows it, its section begins with the comment."""
        if mark.leads:
            lines, characters = self._lead_size
            if self._lead < 0 or lines >= _LEAD_LINES or characters > _LEAD_CHARACTERS:
                self._lead, self._lead_size = len(self._ready) - 1, (1, size)
            else:
                self._lead_size = (lines + 1, characters + size)
            return
        if self._lead >= 0 and atom.title:
            lead = self._ready[self._lead]
            lead.strength = max(lead.strength, atom.strength)
            lead.level, lead.title, lead.title_start = atom.level, atom.title, atom.title_start
            atom.level, atom.title = -1, ""
            for between in self._ready[self._lead + 1 :]:
                between.strength = structure.GLUED
        self._lead = -1
