"""Pattern separation: a vector spread over 2,048 dimensions, of which only the strongest are kept.

The matrix is 2048 x dim, standard normal from a Mersenne Twister seeded with 42, times sqrt(1/2048). Of what
it gives, the 102 values that are largest whatever their sign (5 %) are kept and brought to unit length. Two
texts that are near but not the same come apart: a cosine of 0.93 becomes about 0.71, 0.5 becomes 0.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from castle.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OUT, KEPT, SEED = 2048, 102, 42


def spec(identity: str, dim: int) -> str:
    """Return the name of the projection of an embedder's vectors: equal names give comparable ones."""
    return f"{identity}/{dim}>{OUT}/{KEPT}/{SEED}"


def project(vector: NDArray[np.float32]) -> bytes:
    """Return the projection of a vector: 102 places (uint16), then as many values (float16)."""
    import numpy as np

    if vector.ndim != 1 or not vector.size:
        raise UsageError(f"a vector of shape {vector.shape} cannot be projected")
    spread = _matrix(vector.size) @ vector.astype(np.float32)
    places = np.sort(np.argsort(-np.abs(spread), kind="stable")[:KEPT])
    values = spread[places]
    norm = float(np.linalg.norm(values))
    if norm > 1e-8:
        values = values / norm
    return bytes(places.astype("<u2").tobytes() + values.astype("<f2").tobytes())


def dense(projection: bytes) -> NDArray[np.float32]:
    """Return a projection as the vector of 2,048 numbers that it stands for."""
    import numpy as np

    if len(projection) != 4 * KEPT:
        raise UsageError("a projection has another length: it was made by another version")
    places = np.frombuffer(projection[: 2 * KEPT], dtype="<u2")
    wide = np.zeros(OUT, dtype=np.float32)
    wide[places] = np.frombuffer(projection[2 * KEPT :], dtype="<f2")
    return wide


@lru_cache(maxsize=2)
def _matrix(dim: int) -> NDArray[np.float32]:
    import numpy as np

    # The older generator on purpose: its numbers are the same in every version of NumPy.
    normal = np.random.RandomState(SEED).standard_normal((OUT, dim))
    made: NDArray[np.float32] = (normal * np.sqrt(1 / OUT)).astype(np.float32)
    return made
