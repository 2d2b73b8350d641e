"""Info-weight: drawers that say little beyond what was filed before them step back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from castle.search.candidates import Candidate, boosted

STAGE = "info-weight"


def info_weight(
    candidates: Sequence[Candidate],
    novelty: Mapping[str, float | None],
    *,
    threshold: float = 0.10,
    min_factor: float = 0.5,
) -> list[Candidate]:
    """Multiply each score by ``info_factor`` of the drawer's novelty and rank again; nothing is dropped.

    ``novelty`` is by drawer id; a drawer that is not in it keeps its score, and so does one whose score is
    not above 0, which a smaller multiple would raise. The factor that was applied is noted in ``boosts``.
    """
    factors = {
        c.id: info_factor(novelty[c.id], threshold, min_factor)
        for c in candidates
        if c.id in novelty and c.score > 0
    }
    return boosted(candidates, factors, STAGE)


def info_factor(novelty: float | None, threshold: float, min_factor: float) -> float:
    """Return min_factor + (1 - min_factor) * novelty / threshold below the threshold, else 1; never above 1.

    A novelty that is unknown, negative or not finite is never punished, and a threshold of 0 or less switches
    the demotion off.
    """
    if novelty is None or not math.isfinite(novelty) or novelty < 0:
        return 1.0
    if threshold <= 0 or novelty >= threshold:
        return 1.0
    return min(1.0, min_factor + (1.0 - min_factor) * novelty / threshold)
