"""What a question asks for beside its words, as a score of each candidate: times, names, phrases, voice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from castle.records import Drawer
from castle.search.names import Named
from castle.search.question import Question
from castle.search.voice import voiced
from castle.store.graph_values import DAY
from castle.store.reading import served
from castle.text.names.scripts import WORD, fold
from castle.text.when import BEGINNING, ENDLESS, Interval, intervals
from castle.text.words import words

LEAST_EDGE = 2 * DAY
"""The least distance outside an interval, in microseconds, at which the fit of a time has fallen to 1/e."""
MOST_EDGE = 30 * DAY
TOLD = 0.8
"""What it counts that a drawer tells of a time, beside that it was written then."""
MENTIONED = 0.3
"""What it counts that a drawer bears a name in its text, beside that its speaker has it."""
NEAR_NAME = 0.5
"""What a name counts that a question spells with one letter wrong."""

ALONE = 8.0
"""How many times as much its times count for a question that asks for little else."""

_FAINT = 0.01
_READ = 2000


def weights_for(question: Question, weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights for a question: "what did we talk about on 9 May" asks for nothing but its day."""
    if question.vague and question.times:
        return {**weights, "times": ALONE * weights.get("times", 0.0)}
    return weights


def signals(question: Question, drawers: Mapping[str, Drawer]) -> dict[str, dict[str, float]]:
    """Score the drawers of candidates by the times, names, phrases and voice of a question, if it has any.

    For each signal the answer holds the score in (0, 1] of each drawer, by id, that it speaks for.
    The rest of a text than its first 2,000 characters is not searched for the times that it tells of.
    """
    found: dict[str, dict[str, float]] = {}
    if question.times:
        fits = {id_: _timely(question.times, drawer) for id_, drawer in drawers.items()}
        found["times"] = {id_: fit for id_, fit in fits.items() if fit > _FAINT}
    if question.names or question.phrases:
        texts = {id_: _Spoken(drawer) for id_, drawer in drawers.items()}
        found["names"] = _named(question.names, texts)
        found["phrases"] = _holding(question.phrases, texts)
    found["voice"] = voiced(question.voice, drawers)
    return {name: scores for name, scores in found.items() if scores}


def _timely(times: Sequence[Interval], drawer: Drawer) -> float:
    """Return how well a drawer fits, by when it was written or by the times that it tells of."""
    fit = time_fit(times, drawer.authored_at)
    for told in intervals(served(drawer)[:_READ], drawer.authored_at):
        if told.weight == 1.0 and told.start != BEGINNING and told.end != ENDLESS:
            fit = max(fit, TOLD * time_fit(times, (told.start + told.end) // 2))
    return fit


def time_fit(times: Sequence[Interval], moment: int) -> float:
    """Return how well a moment fits the best of the intervals, in [0, 1].

    Inside it is the interval's weight; outside it falls by exp(-distance / edge), the edge being a quarter of
    the interval but two days at least and thirty at most.
    """
    return max((_fit(interval, moment) for interval in times), default=0.0)


def time_edge(interval: Interval) -> int:
    """Return how far outside an interval, in microseconds, a time fits it 1/e as well as inside."""
    if interval.start == BEGINNING or interval.end == ENDLESS:
        return LEAST_EDGE
    return min(max((interval.end - interval.start) // 4, LEAST_EDGE), MOST_EDGE)


def _fit(interval: Interval, moment: int) -> float:
    gap = max(interval.start - moment, moment - interval.end + 1, 0)
    return interval.weight * math.exp(-gap / time_edge(interval))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A run of words that is looked for, and the first letters of it that a text must have."""

    run: str
    first: str


def _wanted(parts: Sequence[str]) -> list[_Wanted]:
    found = []
    for part in parts:
        if words(part):
            first = WORD.search(part)
            found.append(_Wanted(_run_of(part), fold(first[0]) if first else ""))
    return found


class _Spoken:
    """A drawer's speaker and text as words, which are looked at only where the letters are there."""

    def __init__(self, drawer: Drawer) -> None:
        self.speaker = _run_of(drawer.speaker)
        self._text = served(drawer)

    @cached_property
    def _folded(self) -> str:
        return fold(self._text)

    @cached_property
    def _words(self) -> str:
        return _run_of(self._text)

    def holds(self, wanted: _Wanted) -> bool:
        """Whether the text holds these words one after the other."""
        return wanted.first in self._folded and wanted.run in self._words


def _named(names: Sequence[Named], texts: Mapping[str, _Spoken]) -> dict[str, float]:
    """Score by the names that a drawer or its speaker bears, the rarer among these drawers the more.

    A name is worth log(1 + drawers / drawers that bear it).
    """
    scores: dict[str, float] = {}
    total = 0.0
    for name in names:
        forms = _wanted(name.forms)
        held: dict[str, float] = {}
        for id_, text in texts.items():
            if any(form.run in text.speaker for form in forms):
                held[id_] = 1.0
            elif any(map(text.holds, forms)):
                held[id_] = MENTIONED
        if held:
            worth = math.log(1 + len(texts) / len(held)) * (NEAR_NAME if name.distance else 1.0)
            total += worth
            for id_, share in held.items():
                scores[id_] = scores.get(id_, 0.0) + worth * share
    return {id_: score / total for id_, score in scores.items()}


def _holding(phrases: Sequence[str], texts: Mapping[str, _Spoken]) -> dict[str, float]:
    """Score by the share of the phrases that a drawer holds word for word."""
    wanted = _wanted(phrases)
    shares = {id_: sum(map(text.holds, wanted)) / max(1, len(wanted)) for id_, text in texts.items()}
    return {id_: share for id_, share in shares.items() if share}


def _run_of(text: str) -> str:
    """Return a text's words with a space before and after each, so that a run of words is a part of it."""
    return f" {' '.join(words(text))} "
