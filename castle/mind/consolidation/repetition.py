"""How many episodes share the first words of each, as the former system counted repetition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.mind.consolidation.scoring import REPETITIONS
from castle.store.mind_cycles import texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST_WORDS = 5
_WORD = re.compile(r"\w{4,}")
_BATCH = 2_000


def keyword_repetitions(cx: Connection, ids: Sequence[str]) -> NDArray[np.float64]:
    """Return for each drawer how many hold one of its first five words of four letters or more.

    The drawer itself is one of them. No more than three are counted: more make no difference.
    """
    import numpy as np

    firsts: list[tuple[str, ...]] = []
    holders: dict[str, list[int]] = {}
    for start in range(0, len(ids), _BATCH):
        part = ids[start : start + _BATCH]
        said = texts(cx, part)
        for place, id_ in enumerate(part, start=start):
            found = dict.fromkeys(_WORD.findall(said.get(id_, "").casefold()))
            firsts.append(tuple(islice(found, FIRST_WORDS)))
            for word in found:
                known = holders.setdefault(word, [])
                if len(known) < REPETITIONS:
                    known.append(place)
    return np.array([_counted(place, words, holders) for place, words in enumerate(firsts)], dtype=np.float64)


def _counted(place: int, first: Sequence[str], holders: dict[str, list[int]]) -> float:
    alike = {place}.union(*(holders[word] for word in first))
    return float(min(len(alike), REPETITIONS))
