"""Behaviour: scenarios, their transitions and branches, and what can be observed of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

from castle.text.understanding.metric import BEHAVIORAL, Metric
from castle.text.understanding.roles import Roles

_FULL_BRANCHING = log(7) + 0.5 * log(4)
"""Six branches, three of them for errors."""


def behavioral(requirements: Sequence[Roles]) -> list[Metric]:
    """Return how far statements are scenarios, complete, branching and observable, in [0, 1].

    A branch is a kind of condition in a statement; an error branch is a statement that speaks of an error.
    """
    total = len(requirements)
    scenarios = sum(bool(each.conditions) for each in requirements) / total
    transitions = [complete for each in requirements for complete in _transitions(each)]
    completeness = sum(transitions) / len(transitions) if transitions else 0.0
    branches = sum(len(each.conditions) for each in requirements)
    errors = sum(each.error for each in requirements)
    branching = (log(1 + branches) + 0.5 * log(1 + errors)) / _FULL_BRANCHING if branches else 0.0
    observed = sum(each.observable for each in requirements) / total
    metric = BEHAVIORAL.metric
    return [
        metric("scenario_decomposition_score", 0.25, scenarios, 1 - exp(-3 * scenarios)),
        metric("transition_completeness_score", 0.35, completeness, completeness),
        metric("branch_coverage_score", 0.20, branching, branching),
        metric("observability_score", 0.20, observed, observed),
    ]


def _transitions(each: Roles) -> list[bool]:
    """Return whether each transition of a statement is complete.

    Every kind of condition is one, complete with guard, action and observable; without a condition an action
    or observable alone makes one, complete with both.
    """
    if each.conditions:
        return [guarded and each.acts and each.observable for guarded in each.conditions]
    return [each.acts and each.observable] if each.acts or each.observable else []
