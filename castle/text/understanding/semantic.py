"""Semantics: how many statements name an actor, an action, an object, an outcome and a trigger."""

from __future__ import annotations

from collections.abc import Sequence

from castle.text.understanding.metric import SEMANTIC, Metric
from castle.text.understanding.roles import Roles

_IDEAL_TRIGGERS = 0.7


def semantic(requirements: Sequence[Roles]) -> list[Metric]:
    """Return the shares of the statements that name each part, in [0, 1].

    Not every statement needs a trigger: a share of 0.7 scores 1. In ``scc_score``, the mean of the five
    shares, triggers weigh 0.7 as well.
    """
    total = len(requirements)
    actors = sum(bool(each.actors) for each in requirements) / total
    actions = sum(each.acts for each in requirements) / total
    objects = sum(bool(each.objects) for each in requirements) / total
    outcomes = sum(each.outcome for each in requirements) / total
    triggers = sum(each.triggered for each in requirements) / total
    mean = (actors + actions + objects + outcomes + 0.7 * triggers) / 4.7
    metric = SEMANTIC.metric
    return [
        metric("actor_presence", 0.20, actors, actors),
        metric("action_presence", 0.20, actions, actions),
        metric("object_presence", 0.20, objects, objects),
        metric("outcome_presence", 0.20, outcomes, outcomes),
        metric("trigger_presence", 0.10, triggers, triggers / _IDEAL_TRIGGERS),
        metric("scc_score", 0.10, mean, mean),
    ]
