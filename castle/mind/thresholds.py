"""Cosines that were chosen for one embedder, brought to another one.

The numbers of the mind were chosen for MiniLM's sentence vectors. Another embedder spreads its cosines
otherwise, so a calibration of the palace, where there is one, says which of its cosines is as rare.
"""

from __future__ import annotations

import json
from itertools import pairwise

from sqlalchemy import Connection

from castle.store.mind_rows import get_meta, set_meta

DUPLICATE = 0.95
TRIGGER = 0.65


def calibrated(cx: Connection, identity: str, cosine: float) -> float:
    """Return the cosine of an embedder that stands for one of MiniLM's; the same one without calibration."""
    stored = get_meta(cx, _key(identity))
    if stored is None:
        return cosine
    points = [(-1.0, -1.0), *sorted((float(a), float(b)) for a, b in json.loads(stored)), (1.0, 1.0)]
    for (low, from_), (high, to) in pairwise(points):
        if low <= cosine <= high and high > low:
            return from_ + (to - from_) * (cosine - low) / (high - low)
    return cosine


def calibrate(cx: Connection, identity: str, points: list[tuple[float, float]]) -> None:
    """Keep which cosines of an embedder stand for which of MiniLM's."""
    set_meta(cx, _key(identity), json.dumps(points))


def _key(identity: str) -> str:
    return f"calibration:{identity}"
