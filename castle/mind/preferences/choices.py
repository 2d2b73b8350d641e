"""What a preference chooses, in the place of what, and what for: by that two of them exclude each other.

Neither their names nor the nearness of their vectors tells whether two things exclude each other. What can be
told is that one rejects what the other chooses, and that two choose differently for the same purpose. The
second need not be a conflict, and is said to be a possible one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from castle.mind.preferences.cues import Cue, linking
from castle.mind.preferences.signals import cues_in, topic_of
from castle.text.words import words


@dataclass(frozen=True, slots=True)
class Choice:
    """What is chosen as it was said, and the words of it, of what is rejected for it, and what it is for."""

    named: str
    chosen: frozenset[str]
    rejected: frozenset[str]
    purpose: frozenset[str]


@lru_cache(1_000)
def choice_of(text: str) -> Choice:
    """Return what a sentence chooses."""
    lowered = text.lower()
    cue = next(iter(cues_in(lowered, reported=True)), None)
    language = cue[0].language if cue else "en"
    said = lowered if cue is None or "*" in cue[0].phrase else lowered[cue[2] :]
    instead, purpose = _links(language)
    own = cue[0] if cue else None
    first, second = _halves(instead, said)
    named, why = _halves(purpose, first)
    rejected, why_not = _halves(purpose, second)
    return Choice(
        " ".join(named.split()).strip(" ,;:.!"),
        _about(named, own),
        _about(rejected, own),
        frozenset(words(f"{why} {why_not}")),
    )


def excluded(one: str, other: str) -> str:
    """Return why one sentence rejects what the other chooses, "" where none does."""
    a, b = choice_of(one), choice_of(other)
    if a.purpose and b.purpose and not a.purpose & b.purpose:
        return ""
    if any(here.chosen and here.chosen <= there.rejected for here, there in ((a, b), (b, a))):
        return f"one rejects what the other chooses: {a.named} / {b.named}"
    return ""


def rivals(one: str, other: str) -> str:
    """Return how two sentences choose differently for the same purpose, "" where they do not."""
    a, b = choice_of(one), choice_of(other)
    if not a.purpose or a.purpose != b.purpose or not a.chosen or not b.chosen or a.chosen & b.chosen:
        return ""
    return f"they choose differently for {' '.join(sorted(a.purpose))}: {a.named} / {b.named}"


def _halves(link: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return what stands before the first link and what stands after it, "" where there is none."""
    parts = link.split(text, 1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def _about(text: str, cue: Cue | None) -> frozenset[str]:
    """Return the words that tell, or else all of them."""
    return topic_of(text, cue) or frozenset(words(text))


@cache
def _links(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return _any_of(linking("instead", language)), _any_of(linking("purpose", language))


def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    found = "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{found})(?!\w)" if found else r"(?!)")
