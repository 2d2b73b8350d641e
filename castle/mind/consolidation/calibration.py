"""How the embedder of a palace spreads its cosines, measured on the palace itself.

Of some 2,000 random pairs of episodes, and of every episode with its nearest earlier one, the quantiles tell
which cosine is as rare here as another one is for MiniLM, whose numbers the thresholds of the mind are. They
are kept for each embedder, and measured again once a palace has grown to four times the size.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.mind.thresholds import DUPLICATE, calibrate, calibrated
from castle.store.mind_cycles import Columns
from castle.store.mind_index import drawer_vectors
from castle.store.mind_rows import get_meta, set_meta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

PAIRS = 2_000
SAMPLED = 1_000
"""Episodes whose vectors the random pairs are made of."""
FEWEST = 50
"""Episodes with vectors that a calibration needs."""
GROWTH = 4
SEED = 42

REFERENCE = (0.091, 0.319, 0.590, 0.714, 0.847)
"""Cosines of MiniLM: 5, 50 and 95 % of random pairs, 50 and 95 % of nearest ones.

Measured on the 2,897 drawers of five conversations of LoCoMo.
"""
_MINILM = "all-MiniLM-L6-v2"

LINK_DEVIATIONS = 3.0
"""Standard deviations above the mean of random pairs from which two episodes belong together."""
LINK_QUANTILE = 0.9
"""The share of episodes that have no nearer neighbour than those that belong together."""
LINK_UNKNOWN = 0.8
"""The cosine that joins two episodes where there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The cosines of one embedder in one palace: mean, deviation and quantiles of pairs.

    ``random`` holds the quantiles 5, 50 and 95 % of random pairs, ``nearest`` 50, 90 and 95 % of nearest
    ones; ``episodes`` is how many had a vector.
    """

    episodes: int
    mean: float
    deviation: float
    random: tuple[float, float, float]
    nearest: tuple[float, float, float]

    @property
    def points(self) -> list[tuple[float, float]]:
        """Pairs of a cosine of MiniLM and the one that stands for it here, both rising."""
        here = (*self.random, self.nearest[0], self.nearest[2])
        found: list[tuple[float, float]] = []
        for there, mine in zip(REFERENCE, here, strict=True):
            if not found or mine > found[-1][1]:
                found.append((there, round(mine, 6)))
        return found


def known(cx: Connection, identity: str) -> Calibration | None:
    """Return the calibration of an embedder, None while there is none."""
    stored = get_meta(cx, _key(identity))
    if stored is None:
        return None
    told = json.loads(stored)
    return Calibration(**{**told, "random": tuple(told["random"]), "nearest": tuple(told["nearest"])})


def measure(palace: Palace, cx: Connection, episodes: Columns) -> Calibration | None:
    """Measure a palace; None where too few episodes have a vector. The same palace gives the same numbers."""
    import numpy as np

    usable = np.flatnonzero(~np.isnan(episodes.cosine))
    if len(usable) < FEWEST:
        return None
    chance = np.random.default_rng(SEED)
    picked = chance.choice(usable, min(SAMPLED, len(usable)), replace=False)
    held = drawer_vectors(palace, cx, [episodes.ids[place] for place in picked])
    near = episodes.cosine[usable]
    near = near[episodes.nearest[usable] > 0]
    if len(held) < FEWEST or len(near) < FEWEST:
        return None
    mean, deviation, spread = _pairs(np.stack(list(held.values())), chance)
    nearest = np.quantile(near, (0.5, LINK_QUANTILE, 0.95))
    return Calibration(len(usable), mean, deviation, spread, _three(nearest))


def keep(cx: Connection, identity: str, found: Calibration) -> None:
    """Keep a calibration; the thresholds of every other embedder than MiniLM follow it."""
    set_meta(cx, _key(identity), json.dumps(asdict(found)))
    if not identity.startswith(_MINILM):
        calibrate(cx, identity, found.points)


def outgrown(found: Calibration | None, episodes: Columns) -> bool:
    """Whether a palace is to be measured, for the first time or anew."""
    import numpy as np

    count = int(np.count_nonzero(~np.isnan(episodes.cosine)))
    return count >= FEWEST and (found is None or count >= GROWTH * found.episodes)


def link(cx: Connection, identity: str, found: Calibration | None) -> float:
    """Return the cosine from which two episodes of a palace say much the same.

    It is one that nine of ten episodes do not reach with any earlier one, and rarer than what chance brings
    about; near duplicates always reach it.
    """
    if found is None:
        return LINK_UNKNOWN
    rare = found.mean + LINK_DEVIATIONS * found.deviation
    return min(max(found.nearest[1], rare), calibrated(cx, identity, DUPLICATE))


def _pairs(
    vectors: NDArray[np.float32], chance: np.random.Generator
) -> tuple[float, float, tuple[float, float, float]]:
    import numpy as np

    one = chance.integers(0, len(vectors), PAIRS)
    other = (one + chance.integers(1, len(vectors), PAIRS)) % len(vectors)
    cosines = np.einsum("ij,ij->i", vectors[one], vectors[other]).astype(np.float64)
    return float(cosines.mean()), float(cosines.std()), _three(np.quantile(cosines, (0.05, 0.5, 0.95)))


def _three(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float, float]:
    low, middle, high = (float(value) for value in values)
    return low, middle, high


def _key(identity: str) -> str:
    return f"calibration.measured:{identity}"
