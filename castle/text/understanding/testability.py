"""Testability: limits that can be measured, against words that promise without a limit.

Expressions work on statements with single spaces, and a number is taken whole and never tried again, so that
the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp

from castle.text.understanding import lexicon
from castle.text.understanding.metric import TESTABILITY, Metric
from castle.text.understanding.requirements import Requirement

_NUMBER = r"(?<![\w.,])\d[\d.,]*+"
_MEASURED = re.compile(
    _NUMBER
    + r" ?(?:%|(?:"
    + r"percent|ms|milliseconds?|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?"
    + r"|b|[kmgtp]i?b|bits?|bytes?|(?:kilo|mega|giga|tera|peta)bytes?"
    + r"|(?:requests?|quer(?:y|ies)|transactions?|operations?)(?: per | ?/ ?)[a-z]+"
    + r")\b)"
)
_RANGE = re.compile(r"(?<![\w.,-])\d[\d.,]*+ ?[-–—] ?\d[\d.,]*+(?!-)")
_SIGN = re.compile(r"[<>=≤≥] ?\d")
_WORDED = re.compile(
    r"\b(?:(?:less|greater) than|equal to|at (?:least|most)|no more than|(?:maximum|minimum) of|up to"
    r"|(?:within|exactly|precisely) \d|between \d[\d.,]*+[^ ]{0,20} and \d|from \d[\d.,]*+[^ ]{0,20} to \d"
    r"|http status|http \d{3}\b)"
)
_FORBIDDEN = re.compile(
    r" (?:(?:must|shall|should|will|do|does|can) not|cannot|never|prohibited|forbidden"
    r"|not (?:allowed|permitted)|out of scope|excludes?|omits?)(?= )"
)


def testability(requirements: Sequence[Requirement]) -> list[Metric]:
    """Return the share of hard constraints, constraints per statement and exclusions per statement.

    A hard constraint is a number with a unit, a comparison, a range or a bound, and one place may be several.
    A soft one is each vague quality that a statement names. The last two saturate: 1 - e^(-2x), 1 - e^(-5x).
    """
    total = len(requirements)
    hard = hard_constraints("\n".join(each.text.lower() for each in requirements))
    soft = sum(map(soft_constraints, requirements))
    excluded = len(_FORBIDDEN.findall("\n".join(each.spoken for each in requirements)))
    ratio = hard / (hard + soft) if hard + soft else 0.0
    density, exclusion = (hard + soft) / total, excluded / total
    metric = TESTABILITY.metric
    return [
        metric("hard_constraint_ratio", 0.45, ratio, ratio),
        metric("constraint_density", 0.35, density, 1 - exp(-2 * density)),
        metric("negative_space_coverage", 0.20, exclusion, 1 - exp(-5 * exclusion)),
    ]


def hard_constraints(lower: str) -> int:
    """Count the constraints that can be measured, in text in lower case."""
    found = _WORDED.findall(lower)
    for pattern in (_MEASURED, _RANGE, _SIGN):
        found += pattern.findall(lower)
    return len(found)


def soft_constraints(requirement: Requirement) -> int:
    """Count the vague qualities that a statement names, each once."""
    return len(lexicon.SOFT.intersection(requirement.words)) + sum(
        phrase in requirement.spoken for phrase in lexicon.SOFT_PHRASES
    )
