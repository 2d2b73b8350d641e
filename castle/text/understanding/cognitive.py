"""Cognitive load: how much a reader has to hold in mind at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from castle.text.understanding import lexicon
from castle.text.understanding.metric import COGNITIVE, Metric
from castle.text.understanding.prepare import Prose

_CONCEPT_ENDINGS = ("tion", "ment", "ness", "ity", "er", "or", "ist")


def cognitive(prose: Prose) -> list[Metric]:
    """Return lengths, density and loads; a score falls from 1 at the ideal to 0 at 0 and at twice the ideal.

    Conjunctions, negations and conditions are related to words per sentence times one more than the number
    of conjunctions, cut to an integer of at least 1, which grows with the text as its words do; the limits
    of the scores (0.10, and 0.05 for negations) belong to that quantity and not to the number of words.
    """
    length, weight = prose.words_per_sentence, prose.syllables_per_word
    density = len(_concepts(prose.words)) / len(prose.words) if prose.words else 0.0
    coordination = _count(prose.counts, lexicon.COORDINATING)
    subordination = _count(prose.counts, lexicon.SUBORDINATING)
    load = max(1, int(length * (coordination + subordination + 1)))
    conditions = _count(prose.counts, lexicon.CONDITIONS)
    metric = COGNITIVE.metric
    return [
        metric("sentence_length", 0.20, length, 1 - abs(length - 20) / 20),
        metric("syllable_complexity", 0.15, weight, 1 - abs(weight - 1.5) / 1.5),
        metric("concept_density", 0.15, density, 1 - abs(density - 0.20) / 0.20),
        metric("coordination_complexity", 0.15, coordination / load, 1 - coordination / load / 0.10),
        metric("subordination_complexity", 0.15, subordination / load, 1 - subordination / load / 0.10),
        metric("negation_load", 0.10, _negations(prose) / load, 1 - _negations(prose) / load / 0.05),
        metric("conditional_load", 0.10, conditions / load, 1 - conditions / load / 0.10),
    ]


def _count(counts: Mapping[str, int], words: Iterable[str]) -> int:
    return sum(counts.get(word, 0) for word in words)


def _concepts(words: Iterable[str]) -> set[str]:
    """Return the words that are capitalised or have the ending of a noun, without regard to case."""
    found = set()
    for word in set(words):
        lower = word.lower()
        if word[0].isupper() or (lower.endswith(_CONCEPT_ENDINGS) and lower not in _CONCEPT_ENDINGS):
            found.add(lower)
    return found


def _negations(prose: Prose) -> int:
    """Count negations; a modal verb's *not*, as *cannot*, is the plain way to forbid and no load."""
    negations = _count(prose.counts, lexicon.NEGATIONS)
    if "not" not in prose.counts:
        return negations
    lowered = map(str.lower, prose.words)
    return negations - sum(
        word == "not" and before in lexicon.NEGATED_MODALS for before, word in pairwise(lowered)
    )
