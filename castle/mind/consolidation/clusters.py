"""Episodes that say much the same: families of nearest neighbours, and dense clusters of vectors.

A family costs nothing: every episode's nearest earlier one is known, and links of at least some cosine join
them. Clusters are those of DBSCAN (Ester, Kriegel, Sander and Xu, KDD 1996) over cosines, for at most a few
thousand vectors at once; they need scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from castle.errors import CastleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_SAMPLES = 3
COMPAT_EPS = 0.3
"""The distance of the former system, between projections onto 2,048 dimensions."""
MOST_MEMBERS = 100
"""Members beyond which a cluster is looked at more closely."""
CLOSER = 3
"""How often it is looked at more closely."""
WITHOUT = "patterns are not looked for: they need scikit-learn, `pip install 'cognitive-castle[mind]'`"
_BLOCK = 1_000
_TINY = 1e-7


def families(
    rids: NDArray[np.int64], nearest: NDArray[np.int64], cosines: NDArray[np.float64], least: float
) -> NDArray[np.int64]:
    """Return a label for each episode; those that links of at least ``least`` join have the same one.

    ``rids`` rise. A link to what is not among them joins nothing.
    """
    import numpy as np

    parents = list(range(len(rids)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    linked = np.flatnonzero((nearest > 0) & (np.nan_to_num(cosines, nan=-1.0) >= least))
    places = np.searchsorted(rids, nearest[linked])
    for here, there in zip(linked.tolist(), places.tolist(), strict=True):
        if there < len(rids) and rids[there] == nearest[here]:
            one, other = root(here), root(there)
            parents[max(one, other)] = min(one, other)
    return np.array([root(place) for place in range(len(rids))], dtype=np.int64)


def others(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many others each episode has in its family."""
    import numpy as np

    sizes = np.bincount(labels, minlength=len(labels) + 1)
    counts: NDArray[np.float64] = (sizes[labels] - 1).astype(np.float64)
    return counts


def available() -> bool:
    """Whether clusters can be looked for."""
    return find_spec("sklearn") is not None


def clusters(
    vectors: NDArray[np.float32], least: float, min_samples: int = MIN_SAMPLES, *, closer: int = CLOSER
) -> list[list[int]]:
    """Return dense clusters of unit vectors as places, each in order, the one with the first member first.

    Two vectors are near from a cosine of ``least`` on. A cluster of more than MOST_MEMBERS is taken apart at
    a higher one, as long as that gives anything. Raises CastleError without scikit-learn.
    """
    if len(vectors) < min_samples:
        return []
    found: list[list[int]] = []
    for members in _dense(vectors, least, min_samples):
        finer: list[list[int]] = []
        if len(members) > MOST_MEMBERS and closer:
            inner = clusters(vectors[members], least + (1 - least) / 2, min_samples, closer=closer - 1)
            finer = [[members[place] for place in part] for part in inner]
        found += finer or [members]
    return sorted(found)


def medoid(vectors: NDArray[np.float32]) -> int:
    """Return the place of the vector that is nearest to all of them; the first of several."""
    import numpy as np

    return int(np.argmax((vectors @ vectors.sum(axis=0)).round(6)))


def _dense(vectors: NDArray[np.float32], least: float, min_samples: int) -> list[list[int]]:
    import numpy as np

    try:
        graph = _graph(vectors, least)
        labels = (
            import_module("sklearn.cluster")
            .DBSCAN(eps=1 - least + _TINY, min_samples=min_samples, metric="precomputed")
            .fit_predict(graph)
        )
    except ImportError as error:
        raise CastleError(WITHOUT) from error
    return [np.flatnonzero(labels == label).tolist() for label in range(int(labels.max(initial=-1)) + 1)]


def _graph(vectors: NDArray[np.float32], least: float) -> Any:
    """Return the distances of those pairs that are near, a sparse row for each vector, the nearest first."""
    import numpy as np

    near: list[NDArray[np.int64]] = []
    far: list[NDArray[np.float64]] = []
    for start in range(0, len(vectors), _BLOCK):
        for cosines in vectors[start : start + _BLOCK] @ vectors.T:
            places = np.flatnonzero(cosines >= least)
            distances = np.maximum(1 - cosines[places].astype(np.float64), 0.0)
            order = np.argsort(distances, kind="stable")
            near.append(places[order])
            far.append(distances[order])
    ends = np.cumsum([0, *(len(places) for places in near)])
    content: Sequence[Any] = (np.concatenate(far), np.concatenate(near), ends)
    return import_module("scipy.sparse").csr_matrix(content, shape=(len(vectors), len(vectors)))
