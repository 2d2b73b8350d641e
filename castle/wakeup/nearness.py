"""Whether two drawers say the same: by their vectors as the ledger keeps them, or else by their words.

No model is loaded: a vector that was never made is not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, select

from castle.store.ledger import batches, get_value
from castle.store.novelty import in_force
from castle.store.novelty_tables import novelty
from castle.store.schema import vectors
from castle.text.words import words
from castle.wakeup.candidates import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAR = 0.8
"""The cosine from which two texts are about the same."""
ALIKE = 0.6
"""The share of common words from which two texts without vectors are."""


class Nearness:
    """Compares some candidates; ``texts`` are their served texts by id."""

    def __init__(self, cx: Connection, found: Sequence[Candidate], texts: Mapping[str, str]) -> None:
        self._units = _units(cx, [one.rid for one in found])
        self._words = {id_: frozenset(words(text)) for id_, text in texts.items()}

    def near(self, one: Candidate, other: Candidate) -> bool:
        """Whether two drawers say the same."""
        if one.sha256 == other.sha256:
            return True
        first, second = self._units.get(one.rid), self._units.get(other.rid)
        if first is not None and second is not None and float(first @ second) >= NEAR:
            return True
        mine, theirs = self._words.get(one.id, frozenset()), self._words.get(other.id, frozenset())
        return len(mine & theirs) >= ALIKE * max(1, len(mine | theirs))


def _units(cx: Connection, rids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """Return unit vectors by rid; what has none, or a damaged one, is left out."""
    if not in_force(cx):
        return {}
    import numpy as np

    embedder = json.loads(get_value(cx, "embedder") or "{}")
    identity, dim = str(embedder.get("identity", "")), int(embedder.get("dim", 0))
    cached = and_(vectors.c.embedder == identity, vectors.c.input == novelty.c.input)
    found: dict[int, NDArray[np.float32]] = {}
    for part in batches(rids):
        query = select(novelty.c.drawer, vectors.c.vector).join(vectors, cached)
        for rid, stored in cx.execute(query.where(novelty.c.drawer.in_(part))):
            if len(stored) != 2 * dim:
                continue
            vector = np.frombuffer(stored, dtype=np.float16).astype(np.float32)
            norm = float(np.linalg.norm(vector))
            if np.isfinite(norm) and norm > 0:
                found[rid] = vector / norm
    return found
