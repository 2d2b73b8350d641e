"""What a person's own words tell of their preferences, sentence by sentence; no model is needed.

The text of a preference is the person's sentence, or the clause of it that tells. Questions, code, quotations
and sentences that are too long to be said in passing are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from castle.mind.preferences.cues import UNSPACED, Cue, CueKind, found, is_reaction, topics
from castle.text.names.locales import locale, shared
from castle.text.words import words

PreferenceType = Literal["tool_choice", "workflow", "communication_style", "skill_level", "general"]
TYPES: tuple[PreferenceType, ...] = get_args(PreferenceType)

LEAST_CHARS, MOST_CHARS = 6, 300
"""Characters of a sentence that is looked at."""
MOST_TEXT = 100_000
MOST_SIGNALS = 20
"""Signals of one text."""
BASE_STRENGTH, FEELING_STRENGTH, FEELING_FROM = 0.5, 0.3, 0.3
SAME_TOPIC = 0.5
"""From which Jaccard index of their words two preferences are about the same thing."""

_FENCED = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]{0,80})`")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.](?=\w)[^.!?。！？\n]+)*[.!?。！？]*")
_JOINT = re.compile(r"[,\s]+(?:but|and|aber|und|pero|y|mais|et|ma|e|mas|но|а|и)$", re.IGNORECASE)
_TAGGED = re.compile(r"<[^<>\n]{1,80}>|https?://\S+")


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign of a preference: what was said, of which type, for (1) or against (-1), how strongly (0 to 1).

    For a skill 1 means that it is there, -1 that it is being learned. ``topic`` holds the words it is about.
    """

    text: str
    type: PreferenceType
    polarity: int
    strength: float
    topic: frozenset[str]
    language: str


def signals(text: str, valence: float = 0.0, *, reported: bool = False) -> list[Signal]:
    """Return the signals in a person's text, served and not raw; ``valence`` in [-1, 1] strengthens them.

    ``reported``: the text was filed on purpose and may speak of "the user".
    """
    strength = BASE_STRENGTH
    if abs(valence) > FEELING_FROM:
        strength = min(strength + FEELING_STRENGTH * abs(valence), 1.0)
    gathered: dict[tuple[str, int, frozenset[str]], Signal] = {}
    for sentence in _sentences(text[:MOST_TEXT]):
        for signal in _of_sentence(sentence, strength, reported):
            gathered.setdefault((signal.type, signal.polarity, signal.topic), signal)
            if len(gathered) >= MOST_SIGNALS:
                return list(gathered.values())
    return list(gathered.values())


def _sentences(text: str) -> Iterator[str]:
    plain = _INLINE.sub(r"\1", _FENCED.sub("\n", text))
    for line in plain.replace("’", "'").splitlines():
        # Quoted lines, tables and what tools print are not the person's own words.
        if line.lstrip().startswith((">", "|", "$", "#!", "diff ", "@@")) or _TAGGED.search(line):
            continue
        for match in _SENTENCE.finditer(line):
            sentence = match.group().strip(" \t-*•\"'“”„")
            if LEAST_CHARS <= len(sentence) <= MOST_CHARS and not sentence.endswith(("?", "？")):
                yield sentence


def _of_sentence(sentence: str, strength: float, reported: bool) -> Iterator[Signal]:
    lowered = sentence.lower()
    if "«secret:" in lowered:
        return
    chosen = cues_in(lowered, reported)
    for i, (cue, start, end) in enumerate(chosen):
        stop = chosen[i + 1][1] if i + 1 < len(chosen) else len(lowered)
        if is_reaction(cue, lowered[end:stop]):
            continue
        # What is liked stands after the cue, in languages that end with the verb before it.
        before = chosen[i - 1][2] if i else 0
        begin = before if cue.language in UNSPACED else end if stop - end > 2 else start
        about = topic_of(lowered[begin:stop], cue)
        if not about and cue.kind == "style":
            about = frozenset(words(cue.phrase))
        if not about:
            continue
        whole = len(chosen) == 1 or len(lowered) != len(sentence)
        said = (
            sentence
            if whole
            else _JOINT.sub("", sentence[before if begin == before else start : stop].strip(" ,;:—–-"))
        )
        polarity = -1 if cue.kind in ("against", "learns") else 1
        yield Signal(said, _type(cue.kind, about), polarity, strength, about, cue.language)


def cues_in(lowered: str, reported: bool) -> list[tuple[Cue, int, int]]:
    """Return the cues of a sentence in order, of those that overlap the longest one."""
    spans = sorted(
        ((cue, match.start(), match.end()) for cue, match in found(lowered, reported)),
        key=lambda item: (item[1] - item[2], item[1]),
    )
    chosen: list[tuple[Cue, int, int]] = []
    for cue, start, end in spans:
        if all(end <= other[1] or start >= other[2] for other in chosen):
            chosen.append((cue, start, end))
    return sorted(chosen, key=lambda item: item[1])


def topic_of(text: str, cue: Cue | None = None) -> frozenset[str]:
    """Return the words that a text is about: those that are no stopwords of its language."""
    stop = locale(cue.language if cue else "en").stopwords
    own = set(words(cue.phrase)) if cue else set()
    tokens = [token for token in words(text) if token not in stop and token not in own]
    # Languages without blanks give every character and every pair of them: the pairs say enough.
    return frozenset(token for token in tokens if len(token) > 1)


def _type(kind: CueKind, about: frozenset[str]) -> PreferenceType:
    if kind in ("knows", "learns"):
        return "skill_level"
    if kind == "style":
        return "communication_style"
    known = topics()
    if about & known.answering:
        return "communication_style"
    if kind == "habit" or about & known.working:
        return "workflow"
    return "tool_choice" if about & shared().technologies else "general"


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how much two topics have in common: the Jaccard index of their words."""
    return len(one & other) / len(one | other) if one and other else 0.0


def opposed(one: frozenset[str], other: frozenset[str]) -> str:
    """Return the words by which two topics exclude each other, "" when they do not."""
    for left, right in topics().opposites:
        for first, second in ((left, right), (right, left)):
            mine, theirs = one & first, other & second
            if mine and theirs and not (one & second) and not (other & first):
                return f"{min(mine)} / {min(theirs)}"
    return ""
