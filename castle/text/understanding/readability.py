"""Readability: the six classical formulas, scored by their distance from a comfortable value.

Flesch 1948, Kincaid 1975, Gunning 1952, McLaughlin 1969 (SMOG), Coleman and Liau 1975, Senter and Smith 1967.
"""

from __future__ import annotations

from math import sqrt

from castle.text.understanding.metric import READABILITY, Metric
from castle.text.understanding.prepare import Prose

_EASE, _SCHOOL_YEAR, _FOG = 65.0, 10.0, 12.0


def readability(prose: Prose) -> list[Metric]:
    """Return the formulas' values: ease in 0 to 100, the others in school years; a text without words has 0.

    A score is 1 at the ideal and falls to 0 at twice the distance of the ideal from 0 (ease: at 100 off).
    """
    ease, grade, fog, smog, liau, automated = _indexes(prose) if prose.words else (0.0,) * 6
    metric = READABILITY.metric
    return [
        metric("flesch_reading_ease", 0.25, ease, 1 - abs(ease - _EASE) / 100),
        metric("flesch_kincaid_grade", 0.15, grade, _near(grade, _SCHOOL_YEAR)),
        metric("gunning_fog_index", 0.15, fog, _near(fog, _FOG)),
        metric("smog_index", 0.15, smog, _near(smog, _FOG)),
        metric("coleman_liau_index", 0.15, liau, _near(liau, _SCHOOL_YEAR)),
        metric("automated_readability_index", 0.15, automated, _near(automated, _SCHOOL_YEAR)),
    ]


def _near(value: float, ideal: float) -> float:
    return 1 - abs(value - ideal) / (2 * ideal)


def _indexes(prose: Prose) -> tuple[float, float, float, float, float, float]:
    words, sentences = len(prose.words), prose.sentences
    per_sentence, per_word = prose.words_per_sentence, prose.syllables_per_word
    characters = prose.characters / words
    return (
        min(100.0, max(0.0, 206.835 - 1.015 * per_sentence - 84.6 * per_word)),
        max(0.0, 0.39 * per_sentence + 11.8 * per_word - 15.59),
        0.4 * (per_sentence + 100 * prose.complex_words / words),
        1.0430 * sqrt(prose.complex_words * 30 / sentences) + 3.1291,
        max(0.0, 0.0588 * characters * 100 - 0.296 * sentences / words * 100 - 15.8),
        max(0.0, 4.71 * characters + 0.5 * per_sentence - 21.43),
    )
