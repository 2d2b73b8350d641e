"""Priors: what is known of a drawer whatever the question is. Recency of what was said is one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from castle.search.candidates import Candidate, boosted

_DAY = 86_400_000_000


def recency_factor(age_days: float, max_boost: float, tau_days: float) -> float:
    """Return 1 + (max_boost - 1) * exp(-age / tau): ``max_boost`` for what is new, 1 for what is old.

    Ages below 0 count as 0; an exponential decay as in time-weighted retrieval.
    """
    return 1.0 + (max_boost - 1.0) * math.exp(-max(age_days, 0.0) / tau_days)


def recency(
    candidates: Sequence[Candidate],
    authored: Mapping[str, int],
    now: int,
    *,
    max_boost: float,
    tau_days: float,
    strength: float,
) -> list[Candidate]:
    """Multiply each score by its recency factor raised to ``strength``; times are in microseconds.

    A drawer without a time keeps its score. Scores stay at or below 1.
    """
    factors = {
        c.id: recency_factor((now - authored[c.id]) / _DAY, max_boost, tau_days) ** strength
        for c in candidates
        if authored.get(c.id)
    }
    return boosted(candidates, factors, "recency")
