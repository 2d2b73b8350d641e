"""How well procedures do: rates, trend, better variants, and those that say the same twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.mind.thresholds import calibrated
from castle.store.mind_index import vectors_of
from castle.store.mind_procedures import DECAYING, outcomes, procedures
from castle.store.mind_values import Procedure

if TYPE_CHECKING:
    from castle.store.palace import Palace

MOST = 200
LEAST_USES = 3
"""Outcomes that both procedures need before one is called better."""
BETTER_BY = 0.15
REDUNDANT = 0.9
TREND_USES = 8
"""Outcomes from which on there is a trend: of the later half against the earlier one."""


def evaluate(palace: Palace, cx: Connection, wing: str | None) -> dict[str, Any]:
    """Return the evaluation of at most 200 procedures of a wing; the keys are the same for none."""
    found = procedures(cx, wing=wing, limit=MOST)
    used = [one for one in found if one.uses]
    return {
        "procedures": len(found),
        "success_rate_avg": round(sum(map(_rate, used)) / len(used), 4) if used else None,
        "success_rate_trend": _trend(cx, found),
        "better_variants": _better(found),
        "redundant_pairs": _redundant(palace, cx, found),
        "to_review": [one.id for one in found if one.weight < DECAYING],
    }


def _rate(one: Procedure) -> float:
    return one.successes / one.uses


def _trend(cx: Connection, found: Sequence[Procedure]) -> str:
    told = sorted((at, success) for one in found for at, success, _ in outcomes(cx, one.id))
    if len(told) < TREND_USES:
        return "no_data"
    half = len(told) // 2
    early = sum(success for _, success in told[:half]) / half
    late = sum(success for _, success in told[half:]) / (len(told) - half)
    if abs(late - early) <= BETTER_BY:
        return "steady"
    return "improving" if late > early else "worsening"


def _better(found: Sequence[Procedure]) -> list[dict[str, Any]]:
    """Return for each kind of task which procedure does better than which, both being used often enough."""
    groups: dict[str, list[Procedure]] = {}
    for one in found:
        if one.uses >= LEAST_USES:
            groups.setdefault(one.task_type or "general", []).append(one)
    return [
        {
            "task_type": task_type,
            "best_id": best.id,
            "best_rate": round(best.estimate, 4),
            "other_id": other.id,
            "other_rate": round(other.estimate, 4),
            "sure": best.lower > other.estimate,
        }
        for task_type, group in sorted(groups.items())
        for best, other in permutations(group, 2)
        if best.estimate - other.estimate > BETTER_BY
    ]


def _redundant(palace: Palace, cx: Connection, found: Sequence[Procedure]) -> list[dict[str, Any]]:
    """Return pairs for the same kind of task whose triggers mean the same, by stored vectors."""
    with_trigger = [one for one in found if one.trigger]
    vectors = vectors_of(palace, cx, "procedure", [one.id for one in with_trigger])
    least = calibrated(cx, palace.identity.identity, REDUNDANT)
    pairs = []
    for one, other in combinations([one for one in with_trigger if one.id in vectors], 2):
        cosine = float(vectors[one.id] @ vectors[other.id])
        if one.task_type == other.task_type and cosine > least:
            pairs.append({"ids": [one.id, other.id], "similarity": round(cosine, 4)})
    return pairs
