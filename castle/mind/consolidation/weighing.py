"""What a cycle of consolidation does with every episode: its score, and whether it fades."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from castle.mind.consolidation.scoring import Features, ProfileName, score, threshold
from castle.store.mind_cycles import STATES, Columns, Rated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOW_CYCLES = 3
"""Cycles in a row below the threshold after which an episode is cold."""
SCORE_STEP = 5e-4
"""A smaller change of a score is not written."""

ACTIVE, DIM, COLD = (STATES.index(name) for name in ("active", "dim", "cold"))


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a cycle found: the threshold, and for each episode its score, count of low cycles and state.

    ``counts`` says whether the cycle counts against candidates.
    """

    threshold: float
    scores: NDArray[np.float64]
    candidates: NDArray[np.bool_]
    low: NDArray[np.int64]
    state: NDArray[np.int64]
    counts: bool


def weigh(
    found: Columns,
    similar: NDArray[np.float64],
    now: int,
    *,
    profile: ProfileName,
    counts: bool,
    counted_to: int = -1,
) -> Weighed:
    """Score all episodes, and say which are candidates and what becomes of them.

    ``similar`` counts for each the episodes that say the same. Where the cycle ``counts``, a candidate has
    one low cycle more; those up to row ``counted_to`` have been counted by a cycle that was stopped.
    """
    import numpy as np

    since = found.authored if profile == "compat" else found.touched
    features = Features(found.valence, found.outcome, similar, found.cosine, (now - since) / 3.6e9)
    scores = np.round(score(features, profile).total, 4)
    least = threshold(scores, len(found), profile)
    candidates = (scores < least) & ~found.pinned & (found.state != COLD)
    step = np.where(found.rid > counted_to, int(counts), 0)
    low = np.where(found.state == COLD, found.low, np.where(candidates, found.low + step, 0))
    state = np.where(candidates & (low >= LOW_CYCLES), COLD, found.state)
    state = np.where(candidates & (low > 0) & (low < LOW_CYCLES), DIM, state)
    state = np.where(~candidates & (found.state == DIM), ACTIVE, state)
    return Weighed(least, scores, candidates, low, state, counts)


def to_write(found: Columns, weighed: Weighed) -> list[Rated]:
    """Return what there is to write, in the order of filing."""
    import numpy as np

    moved = np.isnan(found.score) | (np.abs(found.score - weighed.scores) > SCORE_STEP)
    changed = moved | (found.low != weighed.low) | (found.state != weighed.state)
    reasons = (
        f"not below {weighed.threshold:.3f} any more",
        f"below {weighed.threshold:.3f}",
        f"{LOW_CYCLES} cycles in a row below {weighed.threshold:.3f}",
    )
    return [
        Rated(
            rid=int(found.rid[place]),
            id=found.ids[place],
            score=float(weighed.scores[place]),
            low=int(weighed.low[place]),
            before=STATES[found.state[place]],
            state=STATES[weighed.state[place]],
            reason=reasons[weighed.state[place]],
        )
        for place in np.flatnonzero(changed).tolist()
    ]


def counted(found: Columns, weighed: Weighed, rated: Sequence[Rated]) -> dict[str, Any]:
    """Return in numbers what a cycle did."""
    import numpy as np

    moves = [one.state for one in rated if one.before != one.state]
    return {
        "forget_candidates": int(weighed.candidates.sum()),
        "archived": moves.count("cold"),
        "dimmed": moves.count("dim"),
        "recovered": moves.count("active"),
        "forget_threshold": round(weighed.threshold, 3),
        "without_vector": int(np.isnan(found.cosine).sum()),
    }


def fingerprint(found: Columns, *more: str) -> str:
    """Return a hash of everything that a cycle goes by, but the time and what it writes itself."""
    import numpy as np

    digest = hashlib.sha256("\n".join(more).encode("utf-8"))
    for whole in (found.rid, found.touched, found.low, found.state, found.nearest):
        digest.update(whole.tobytes())
    for part in (found.valence, found.outcome, found.cosine):
        digest.update(np.round(part, 4).tobytes())
    for flag in (found.felt, found.pinned):
        digest.update(flag.tobytes())
    return digest.hexdigest()
