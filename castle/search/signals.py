"""What a question asks for beside its words, as a score of each candidate: its times, names and phrases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from castle.records import Drawer, StageScore
from castle.search.candidates import Candidate, ranked
from castle.search.names import Named
from castle.search.question import Question
from castle.store.graph_values import DAY
from castle.store.reading import served
from castle.text.when import BEGINNING, ENDLESS, Interval, intervals
from castle.text.words import words

WEIGHTS: Mapping[str, float] = {"times": 0.5, "names": 0.25, "phrases": 0.25}
"""What each signal adds to a score, as a share of the best fused score, where it speaks fully for a drawer."""

LEAST_EDGE = 2 * DAY
"""The least distance outside an interval, in microseconds, at which the fit of a time has fallen to 1/e."""
MOST_EDGE = 30 * DAY
TOLD = 0.8
"""What it counts that a drawer tells of a time, beside that it was written then."""
MENTIONED = 0.3
"""What it counts that a drawer bears a name in its text, beside that its speaker has it."""
NEAR_NAME = 0.5
"""What a name counts that a question spells with one letter wrong."""

_FAINT = 0.01
_READ = 2000

Scores = Mapping[str, Mapping[str, float]]
"""For each signal that a question has, the score in (0, 1] of each drawer that it speaks for."""


def signals(question: Question, drawers: Mapping[str, Drawer]) -> dict[str, dict[str, float]]:
    """Score the drawers of candidates by the times, names and phrases of a question, as far as it has any.

    The rest of a text than its first 2,000 characters is not searched for the times that it tells of.
    """
    found: dict[str, dict[str, float]] = {}
    if question.times:
        fits = {id_: _timely(question.times, drawer) for id_, drawer in drawers.items()}
        found["times"] = {id_: fit for id_, fit in fits.items() if fit > _FAINT}
    if question.names or question.phrases:
        texts = {id_: _run_of(served(drawer)) for id_, drawer in drawers.items()}
        speakers = {id_: _run_of(drawer.speaker) for id_, drawer in drawers.items()}
        found["names"] = _named(question.names, texts, speakers)
        found["phrases"] = _holding(question.phrases, texts)
    return {name: scores for name, scores in found.items() if scores}


def add_signals(
    candidates: Sequence[Candidate], scores: Scores, weights: Mapping[str, float] = WEIGHTS
) -> list[Candidate]:
    """Add signals to fused scores and rank anew: (score + best * sum(weight * signal)) / (1 + sum(weight)).

    ``best`` is the highest fused score, so that any scale will do; scores in [0, 1] stay there. What each
    signal gave is noted among the stages. Equal scores keep their order.
    """
    weights = {name: weights.get(name, 0.0) for name in scores}
    best = max((candidate.score for candidate in candidates), default=0.0)
    total = 1.0 + sum(weights.values())
    added = []
    for candidate in candidates:
        given = {name: score for name in scores if (score := scores[name].get(candidate.id))}
        bonus = best * sum(weights[name] * score for name, score in given.items())
        stages = {**candidate.stages, **{name: StageScore(0, score) for name, score in given.items()}}
        added.append(replace(candidate, score=(candidate.score + bonus) / total, stages=stages))
    return ranked(added, "signals") if scores else list(candidates)


def as_lists(scores: Scores, candidates: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Return the signals as lists to be fused by rank, best first, then by id."""
    known = {candidate.id: candidate.sha256 for candidate in candidates}
    return {
        name: [
            Candidate(id_, known[id_], score)
            for id_, score in sorted(found.items(), key=lambda item: (-item[1], item[0]))
            if id_ in known
        ]
        for name, found in scores.items()
    }


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


def _named(names: Sequence[Named], texts: Mapping[str, str], speakers: Mapping[str, str]) -> dict[str, float]:
    """Score by the names that a drawer or its speaker bears, the rarer among these drawers the more.

    A name is worth log(1 + drawers / drawers that bear it).
    """
    scores: dict[str, float] = {}
    total = 0.0
    for name in names:
        runs = [_run_of(form) for form in name.forms if words(form)]
        held = {
            id_: 1.0 if any(run in speakers[id_] for run in runs) else MENTIONED
            for id_, text in texts.items()
            if any(run in text or run in speakers[id_] for run in runs)
        }
        if held:
            worth = math.log(1 + len(texts) / len(held)) * (NEAR_NAME if name.distance else 1.0)
            total += worth
            for id_, share in held.items():
                scores[id_] = scores.get(id_, 0.0) + worth * share
    return {id_: score / total for id_, score in scores.items()}


def _holding(phrases: Sequence[str], texts: Mapping[str, str]) -> dict[str, float]:
    """Score by the share of the phrases that a drawer holds word for word."""
    runs = [_run_of(phrase) for phrase in phrases if words(phrase)]
    shares = {id_: sum(run in text for run in runs) / max(1, len(runs)) for id_, text in texts.items()}
    return {id_: share for id_, share in shares.items() if share}


def _run_of(text: str) -> str:
    """Return a text's words with a space before and after each, so that a run of words is a part of it."""
    return f" {' '.join(words(text))} "
