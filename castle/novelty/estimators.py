"""How much a vector adds to those before it: the estimators A and B, for whole palaces at once.

A is ``nn_novelty``, 1 - the greatest cosine to an earlier drawer of the same group. B is ``recon_residual``,
what is left of a drawer when its nearest earlier ones are mixed to resemble it as well as they can (Roweis
and Saul, 2000: locally linear embedding, with a Tikhonov term). The drawers come as unit vectors in order of
filing; the place in that order decides what is earlier, so that of two drawers exactly one precedes.

Everything is computed in double precision. Cosines that agree in twelve digits are equal, and of equally near
drawers the one filed last counts as the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEIGHBOURS = 20
"""Earlier drawers that B mixes, k of the formula."""
FEWEST = 5
"""Earlier drawers below which B says nothing."""
TIKHONOV = 1e-3
"""Lambda of the formula, a share of the trace."""

_GRAIN = 10**12
_BLOCK_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Priors:
    """The nearest earlier drawers of each, the nearest first, and how many earlier ones there are at all.

    ``index`` and ``cosine`` have the shape (n, k); where there are fewer, -1 and NaN fill the row.
    """

    index: NDArray[np.int64]
    cosine: NDArray[np.float64]
    count: NDArray[np.int64]


def priors(units: NDArray[np.floating], groups: Sequence[str], k: int = NEIGHBOURS) -> Priors:
    """Find for each unit vector the ``k`` nearest of those that come before it in the same group.

    ``units`` has the shape (n, dim), ``groups`` one name for each. The search is exact: one product of
    matrices for each block of rows.
    """
    import numpy as np

    total = len(units)
    index = np.full((total, k), -1, dtype=np.int64)
    cosine = np.full((total, k), np.nan)
    count = np.zeros(total, dtype=np.int64)
    members: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    for places in members.values():
        rows = np.asarray(places, dtype=np.int64)
        own = np.asarray(units[rows], dtype=np.float64)
        count[rows] = np.arange(len(rows))
        step = max(1, _BLOCK_BYTES // (16 * len(rows)))
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            near, alike = _nearest(own, start, stop, k)
            width = near.shape[1]
            index[rows[start:stop], :width] = np.where(near >= 0, rows[near], -1)
            cosine[rows[start:stop], :width] = alike
    return Priors(index, cosine, count)


def _nearest(
    own: NDArray[np.float64], start: int, stop: int, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return places and cosines of the k nearest before each of the rows from start to stop.

    Cosine and place make one whole number, so that no two are equal and a partial sort decides ties as well.
    """
    import numpy as np

    alike = np.rint(own[start:stop] @ own[:stop].T * _GRAIN).astype(np.int64)
    keys = (alike + 2 * _GRAIN) * stop + np.arange(stop)
    keys[np.arange(stop) >= np.arange(start, stop)[:, None]] = -1
    width = min(k, stop)
    if width < stop:
        keys = np.partition(keys, stop - width, axis=1)[:, stop - width :]
    keys = -np.sort(-keys, axis=1)
    near = np.where(keys >= 0, keys % stop, -1)
    found = np.where(keys >= 0, (keys // stop - 2 * _GRAIN) / _GRAIN, np.nan)
    return near, found


def nn_novelty(found: Priors) -> NDArray[np.float64]:
    """Return estimator A, 1 - the greatest cosine to an earlier drawer, in [0, 2]; 1 where there is none."""
    import numpy as np

    best = found.cosine[:, 0]
    novelty: NDArray[np.float64] = np.where(np.isnan(best), 1.0, np.maximum(0.0, 1.0 - best))
    return novelty


def recon_residual(
    units: NDArray[np.floating], found: Priors, *, fewest: int = FEWEST, tikhonov: float = TIKHONOV
) -> NDArray[np.float64]:
    """Return estimator B, the length of v - wP; NaN where fewer than ``fewest`` drawers come before.

    P are the nearest earlier drawers, G = (P - v)(P - v)', H = G + tikhonov tr(G) I and w = H⁻¹1 / 1'H⁻¹1.
    Where H cannot be inverted, because all of them equal v, every drawer of P weighs the same.
    """
    import numpy as np

    residual = np.full(len(units), np.nan)
    sizes = np.minimum(found.count, found.index.shape[1])
    for size in np.unique(sizes[sizes >= fewest]):
        rows = np.flatnonzero(sizes == size)
        step = max(1, _BLOCK_BYTES // int(8 * size * (units.shape[1] + 3 * size)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            residual[part] = _residuals(units, part, found.index[part, :size], tikhonov)
    return residual


def _residuals(
    units: NDArray[np.floating], rows: NDArray[np.int64], near: NDArray[np.int64], tikhonov: float
) -> NDArray[np.float64]:
    import numpy as np

    centred = units[near].astype(np.float64) - units[rows].astype(np.float64)[:, None, :]
    gram = centred @ centred.transpose(0, 2, 1)
    trace = np.trace(gram, axis1=1, axis2=2)
    size = near.shape[1]
    same = trace <= np.finfo(np.float64).tiny
    gram += (tikhonov * trace)[:, None, None] * np.eye(size)
    gram[same] = np.eye(size)
    raw = np.linalg.solve(gram, np.ones((len(rows), size, 1)))[:, :, 0]
    weights = raw / raw.sum(axis=1, keepdims=True)
    # The weights sum to one, so v - wP is -w(P - v).
    length: NDArray[np.float64] = np.linalg.norm(np.einsum("nk,nkd->nd", weights, centred), axis=1)
    return length
