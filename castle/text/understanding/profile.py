"""The profile of a text: all measures, their categories, and one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from castle.text.understanding.behavioral import behavioral
from castle.text.understanding.cognitive import cognitive
from castle.text.understanding.depth import depth
from castle.text.understanding.metric import CategoryScore, Metric
from castle.text.understanding.prepare import prose_of, without_code
from castle.text.understanding.readability import readability
from castle.text.understanding.requirements import Requirement, listed
from castle.text.understanding.roles import roles
from castle.text.understanding.semantic import semantic
from castle.text.understanding.structure import structure
from castle.text.understanding.testability import testability

_NOTHING = Requirement("", (), "  ")


@dataclass(frozen=True, slots=True)
class Profile:
    """How a text is written and what it pins down.

    ``overall`` is the average of all 34 scores, each weighted by its share of its category and the category's
    share of the whole, in [0, 1] and rounded to four decimals. ``requirements`` is the number of statements
    that layers 2 to 5 were measured on.
    """

    overall: float
    words: int
    requirements: int
    categories: tuple[CategoryScore, ...]
    metrics: tuple[Metric, ...]


def understand(text: str) -> Profile:
    """Measure a text by its words and signs alone, without a model and the same on every machine.

    The measures look for English words; of other languages they see lengths, numbers and markup. They are
    signals, not a judgement. Layer 1 is about form (readability, structure, cognitive load), 2 about
    semantics, 3 testability, 4 behaviour, 5 depth. Where there is nothing to measure, a measure is 0: layer 1
    in a text without words, the others in one without statements. The time is linear in the length.
    """
    markdown = without_code(text)
    prose = prose_of(markdown)
    form = [*readability(prose), *structure(prose.requirements), *cognitive(prose)]
    statements = listed(markdown)
    substance = _substance(statements or [_NOTHING])
    metrics = (
        *(form if prose.words else map(_nothing, form)),
        *(substance if statements else map(_nothing, substance)),
    )
    return Profile(
        overall=round(_average([(each.score, each.weight * each.category_weight) for each in metrics]), 4),
        words=len(prose.words),
        requirements=len(statements),
        categories=_categories(metrics),
        metrics=metrics,
    )


def _substance(statements: Sequence[Requirement]) -> list[Metric]:
    parts = [roles(each) for each in statements]
    return [*semantic(parts), *testability(statements), *behavioral(parts), *depth(statements, parts)]


def _nothing(metric: Metric) -> Metric:
    return replace(metric, raw=0.0, score=0.0)


def _average(weighted: Sequence[tuple[float, float]]) -> float:
    return sum(score * weight for score, weight in weighted) / sum(weight for _, weight in weighted)


def _categories(metrics: Sequence[Metric]) -> tuple[CategoryScore, ...]:
    members: dict[str, list[Metric]] = {}
    for metric in metrics:
        members.setdefault(metric.category, []).append(metric)
    return tuple(
        CategoryScore(name, each[0].category_weight, _average([(m.score, m.weight) for m in each]))
        for name, each in members.items()
    )
