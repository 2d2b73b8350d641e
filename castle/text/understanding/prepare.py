"""Clean prose: what is left of a text without code, comments and markup, and its counts.

Every expression here takes time linear in the text, whatever it holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from castle.text.understanding.lexicon import syllables
from castle.text.understanding.requirements import WORD, Requirement, stated

_FENCES = ("```", "~~~")
_INLINE_CODE = re.compile(r"(?<!`)`++[^`\n]++`++")
_LINK = re.compile(r"!?\[([^\[\]\n]*+)\]\([^()\n]*+\)")
_STARS = re.compile(r"(?<![\s*])\*{1,3}|\*{1,3}(?=[^\s*])")
_UNDERSCORES = re.compile(r"(?<!\w)_++|(?<!_)_++(?!\w)")
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}|[-*+]|\d{1,9}[.)])[ \t]+", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?]+")


@dataclass(frozen=True, slots=True)
class Prose:
    """The counts of a clean text.

    ``words`` are as written, ``counts`` by word in lower case; ``characters`` are those that are not space.
    ``complex_words`` have three syllables or more. ``requirements`` are its statements.
    """

    words: tuple[str, ...]
    counts: Mapping[str, int]
    sentences: int
    characters: int
    syllables: int
    complex_words: int
    requirements: tuple[Requirement, ...]

    @property
    def words_per_sentence(self) -> float:
        """Words per sentence, 0 in a text without either."""
        return len(self.words) / self.sentences if self.sentences else 0.0

    @property
    def syllables_per_word(self) -> float:
        """Syllables per word, 0 in a text without words."""
        return self.syllables / len(self.words) if self.words else 0.0


def without_code(text: str) -> str:
    """Leave out fenced code and HTML comments; what is opened and never closed stays."""
    return _without_comments(_without_fences(text))


def _without_fences(text: str) -> str:
    if not any(fence in text for fence in _FENCES):
        return text
    kept: list[str] = []
    fence, opened = "", 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if not fence and bare.startswith(_FENCES) and bare[0] not in bare.lstrip(bare[0]):
            fence, opened = bare[:3], len(kept)
        elif fence and bare.startswith(fence) and not bare.strip(fence):
            del kept[opened:]
            fence = ""
            continue
        kept.append(line)
    return "".join(kept)


def _without_comments(text: str) -> str:
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return "".join((*kept, text[at:])) if kept else text


def without_markup(text: str) -> str:
    """Leave out inline code and the signs of links, emphasis, headings and lists; their words stay."""
    if "`" in text:
        text = _INLINE_CODE.sub(" ", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    text = _LINE_MARK.sub("", text)
    if "*" in text:
        text = _STARS.sub("", text)
    return _UNDERSCORES.sub("", text) if "_" in text else text


def prose_of(text: str) -> Prose:
    """Clean and count a text that ``without_code`` has been through."""
    clean = without_markup(text)
    words = tuple(WORD.findall(clean))
    counts = Counter(map(str.lower, words))
    spoken = {word: syllables(word) for word in counts}
    return Prose(
        words=words,
        counts=counts,
        sentences=sum(not piece.isspace() for piece in _SENTENCE_END.split(clean) if piece),
        characters=sum(map(len, clean.split())),
        syllables=sum(count * spoken[word] for word, count in counts.items()),
        complex_words=sum(count for word, count in counts.items() if spoken[word] >= 3),
        requirements=tuple(stated(clean)),
    )
