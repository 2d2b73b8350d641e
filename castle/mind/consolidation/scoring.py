"""What keeps an episode in mind: five dimensions, one number, and the threshold below which it fades.

    score = 1.5 emotion + 1.2 outcome + 1.0 repetition + 0.8 novelty + 1.0 recency

Everything here is arithmetic on arrays, one entry for each episode. There are two profiles:

- ``default``: every weight counts once. Emotion never falls as a valence grows, and neither does outcome; an
  episode does not repeat itself. The threshold is a quantile of the palace's own scores, 10 % for every
  factor of ten beyond 100 episodes: 0 % at 100, 20 % at 10,000, 40 % at 1,000,000. It is taken over all
  episodes, cold ones included, so that forgetting does not raise the bar for those that are left.
- ``compat``: the numbers of the former system, for comparison. Its weights count twice, a mild emotion counts
  less than none, and nothing is forgotten below 357 episodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ProfileName = Literal["default", "compat"]
PROFILES: tuple[ProfileName, ...] = ("default", "compat")

WEIGHT_EMOTION, WEIGHT_OUTCOME, WEIGHT_REPETITION = 1.5, 1.2, 1.0
WEIGHT_NOVELTY, WEIGHT_RECENCY = 0.8, 1.0

NEUTRAL = 0.95
"""What an episode without any emotion is worth, its weight included."""
NEUTRAL_BELOW = 0.001
STEEPNESS = 5.0
OUTCOME_UNKNOWN = 0.3
REPETITIONS = 3
NOVELTY_UNKNOWN = 0.5
RECENCY_HOURS = 168.0
"""Hours in which recency falls to 1/e."""

COMPAT_THRESHOLD, COMPAT_GROWTH = 2.0, 0.3
COMPAT_SIZE, COMPAT_LEAST = 10_000, 0.001

FEWEST = 100
"""Episodes up to which nothing is a candidate for forgetting."""
SHARE_PER_DECADE = 0.1
MOST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of episodes. ``valence`` and ``outcome`` are in [-1, 1], the latter NaN where unknown.

    ``similar`` counts episodes that say the same: others only for ``default``, itself included for
    ``compat``. ``cosine`` is that to the nearest one, NaN where unknown; ``hours`` the age.
    """

    valence: Array
    outcome: Array
    similar: Array
    cosine: Array
    hours: Array


@dataclass(frozen=True, slots=True)
class Scores:
    """The five dimensions of each episode, as they are added up, and their sum."""

    emotion: Array
    outcome: Array
    repetition: Array
    novelty: Array
    recency: Array
    total: Array


def score(features: Features, profile: ProfileName = "default") -> Scores:
    """Return what each episode is worth."""
    parts = _compat(features) if profile == "compat" else _default(features)
    emotion, outcome, repetition, novelty, recency = parts
    return Scores(*parts, total=emotion + outcome + repetition + novelty + recency)


def threshold(totals: Array, count: int, profile: ProfileName = "default") -> float:
    """Return the score below which an episode is a candidate for forgetting.

    ``totals`` are the scores of all episodes, ``count`` how many there are.
    """
    import numpy as np

    if profile == "compat":
        return compat_threshold(count)
    share = forgotten_share(count)
    if not share or not len(totals):
        return 0.0
    return float(np.quantile(totals, share))


def forgotten_share(count: int) -> float:
    """Return the share of a palace's episodes that may fade: 0 up to 100, a half at the most."""
    if count <= FEWEST:
        return 0.0
    return min(SHARE_PER_DECADE * math.log10(count / FEWEST), MOST_SHARE)


def compat_threshold(count: int) -> float:
    """Return the threshold of the former system; it is negative below 357 episodes, 2 for none."""
    if count <= 0:
        return COMPAT_THRESHOLD
    return COMPAT_THRESHOLD * (1 + COMPAT_GROWTH * math.log(max(count / COMPAT_SIZE, COMPAT_LEAST)))


def _rising(valence: Array) -> Array:
    import numpy as np

    rising: Array = 2 / (1 + np.exp(-STEEPNESS * np.abs(valence))) - 1
    return rising


def _default(f: Features) -> tuple[Array, Array, Array, Array, Array]:
    import numpy as np

    known = np.where(np.isnan(f.outcome), 0.0, np.abs(f.outcome))
    return (
        np.maximum(NEUTRAL, WEIGHT_EMOTION * _rising(f.valence)),
        WEIGHT_OUTCOME * np.maximum(OUTCOME_UNKNOWN, known),
        WEIGHT_REPETITION * np.minimum(1.0, f.similar / REPETITIONS),
        WEIGHT_NOVELTY * _novelty(f.cosine),
        WEIGHT_RECENCY * _recency(f.hours),
    )


def _compat(f: Features) -> tuple[Array, Array, Array, Array, Array]:
    import numpy as np

    neutral = np.abs(f.valence) < NEUTRAL_BELOW
    emotion = np.where(neutral, NEUTRAL, WEIGHT_EMOTION * _rising(f.valence))
    known = np.where(np.isnan(f.outcome), OUTCOME_UNKNOWN, np.abs(f.outcome))
    return (
        WEIGHT_EMOTION * emotion,
        WEIGHT_OUTCOME * WEIGHT_OUTCOME * known,
        WEIGHT_REPETITION * np.minimum(1.0, f.similar / REPETITIONS),
        WEIGHT_NOVELTY * WEIGHT_NOVELTY * _novelty(f.cosine),
        WEIGHT_RECENCY * _recency(f.hours),
    )


def _novelty(cosine: Array) -> Array:
    import numpy as np

    far: Array = np.where(np.isnan(cosine), NOVELTY_UNKNOWN, np.clip(1 - cosine, 0.0, 1.0))
    return far


def _recency(hours: Array) -> Array:
    import numpy as np

    near: Array = np.exp(-np.maximum(hours, 0.0) / RECENCY_HOURS)
    return near
