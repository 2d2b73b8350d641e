"""Statements of a text: what the measures count as its requirements.

Form is judged by what is stated, in prose cleaned of markup; substance by what is listed, in the markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

WORD = re.compile(r"\w+")

_SHORTEST_LISTED = 10
_SHORTEST_BINDING = 10
_SHORTEST_SENTENCE = 20

_STATED_ID = re.compile(r"\b(?:[A-Z]{2,10}-)?(?:FR|REQ|NFR)-\d+\b")
_AFTER_ID = " \t\r\n:.)]*-–—"
_BINDING = re.compile(r"\b(?:shall|must)\b", re.IGNORECASE)
_AFTER_STOP = re.compile(r"(?<=[.!?])\s+")
_STOP = re.compile(r"(?<!\d)[.!?](?=\s|$)")
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+")
_GHERKIN = re.compile(r"[ \t]*(?:Given|When|Then|And|But)\b")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One statement: its text, its words in lower case, and these with single spaces between and around them.

    In ``spoken``, a phrase between spaces is found whole.
    """

    text: str
    words: tuple[str, ...]
    spoken: str


def stated(prose: str) -> list[Requirement]:
    """Return the statements of clean prose.

    Where identifiers such as ``FR-12`` stand, the text after each up to the next one; otherwise the sentences
    of more than 10 characters that say *shall* or *must*; otherwise all of more than 20 characters.
    """
    bodies = _STATED_ID.split(prose)[1:]
    if bodies:
        return _requirements(text for body in bodies if (text := body.strip(_AFTER_ID)))
    sentences = [sentence.rstrip(".!? \t\r\n") for sentence in _AFTER_STOP.split(prose)]
    binding = [s for s in sentences if len(s) > _SHORTEST_BINDING and _BINDING.search(s)]
    return _requirements(binding or (s for s in sentences if len(s) > _SHORTEST_SENTENCE))


def listed(markdown: str) -> list[Requirement]:
    """Return the statements of a text with markup, code and comments already left out.

    Lines with an identifier, list entries, and lines that begin like Gherkin steps; sentences only where
    there is none of these. Each once, and only those of more than 10 characters.
    """
    found = _lines(markdown) or _STOP.split(markdown)
    return _requirements(
        text
        for text in dict.fromkeys(" ".join(piece.split()) for piece in found)
        if len(text) > _SHORTEST_LISTED
    )


def _lines(markdown: str) -> list[str]:
    identified, bullets, steps = [], [], []
    for line in markdown.splitlines():
        bullet = _BULLET.match(line)
        content = line[bullet.end() :] if bullet else line
        if _STATED_ID.search(content):
            identified.append(content)
        elif bullet and content:
            bullets.append(content)
        elif _GHERKIN.match(line):
            steps.append(content)
    return [*identified, *bullets, *steps]


def _requirements(texts: Iterable[str]) -> list[Requirement]:
    return [_requirement(text) for text in texts]


def _requirement(text: str) -> Requirement:
    words = tuple(WORD.findall(text.lower()))
    return Requirement(text, words, f" {' '.join(words)} ")
