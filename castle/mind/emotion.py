"""What a text feels like, by rules: a valence in [-1, 1] and how sure of it the rules are.

Signs add up from 0: exclamation marks 0.2 each (at most 0.6), emoji 0.15 each way (at most 0.45), words in
capitals 0.1 (at most 0.3), words of praise and of trouble 0.3 (at most 0.9). Marks and capitals strengthen
whatever the words and emoji say, so that anger in capitals is no joy and a loud neutral sentence stays near
neutral; a negation turns the words after it round. No sign at all is (0, 0.5), otherwise the confidence is
max(0.3, 0.8 - 0.15 x (signs - 1)) for as many kinds of signs as there are.
"""

from __future__ import annotations

import re

EXCLAMATION, MOST_EXCLAMATION = 0.2, 0.6
EMOJI, MOST_EMOJI = 0.15, 0.45
CAPITALS, MOST_CAPITALS = 0.1, 0.3
WORD, MOST_WORDS = 0.3, 0.9
REACH = 3
"""Words after a negation that it turns round."""

_GLAD = frozenset("😀😃😄😁😊🙂😍🥰🎉✨👍🙌💪❤🥳😎🚀✅💚🤩")
_SAD = frozenset("😞😢😭😡😠🤬😤😩😫👎💔😱🙁☹😖😣💀❌🤮")
_GOOD = frozenset(
    "amazing awesome brilliant delighted excellent fantastic finally fixed glad good great happy love loved "
    "nice perfect pleased proud solved success thanks wonderful works worked danke gut super toll merci bien "
    "parfait gracias bueno perfecto".split()
)
_BAD = frozenset(
    "angry annoyed annoying awful bad broke broken crash crashed disappointed error fail failed fails "
    "failure frustrated frustrating hate horrible lost pain sad terrible ugly upset worst wrong fehler "
    "kaputt schlecht mauvais horreur triste malo error roto".split()
)
_NEGATIONS = frozenset(
    "not never no none neither nor cannot cant can't don't dont doesn't didn't won't isn't wasn't without "
    "nicht kein keine nie pas jamais nunca".split()
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CAPITALS = re.compile(r"\b[A-Z]{3,}\b")


def score(text: str) -> tuple[float, float]:
    """Return (valence, confidence) of a text."""
    signs = 0
    value = _of_words(text)
    signs += value != 0
    glad = min(EMOJI * sum(char in _GLAD for char in text), MOST_EMOJI)
    sad = min(EMOJI * sum(char in _SAD for char in text), MOST_EMOJI)
    signs += (glad > 0) + (sad > 0)
    value += glad - sad
    marks = min(EXCLAMATION * (text.count("!") + text.count("！")), MOST_EXCLAMATION)
    capitals = min(CAPITALS * len(_CAPITALS.findall(text)), MOST_CAPITALS)
    if value:
        signs += (marks > 0) + (capitals > 0)
        value += (marks + capitals) * (1 if value > 0 else -1)
    if not signs:
        return 0.0, 0.5
    return max(-1.0, min(1.0, value)), max(0.3, 0.8 - 0.15 * (signs - 1))


def _of_words(text: str) -> float:
    good = bad = 0
    turned = 0
    for word in (match.lower().replace("’", "'") for match in _WORD.findall(text)):
        if word in _NEGATIONS:
            turned = REACH
            continue
        if word in _GOOD or word in _BAD:
            if (word in _GOOD) != (turned > 0):
                good += 1
            else:
                bad += 1
        turned -= turned > 0
    return min(WORD * good, MOST_WORDS) - min(WORD * bad, MOST_WORDS)
