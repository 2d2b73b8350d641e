"""Where a cycle looks for patterns: among new episodes and their families, at most 5,000 of them.

What is new is what was filed after the last episode that an earlier cycle looked at, oldest first; what is
left waits for the next cycle. Episodes whose vector was not there yet are looked at once it is. Each wing is
searched by itself, so that nothing of one shows in a pattern of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from castle.errors import CastleError
from castle.mind import separation
from castle.mind.consolidation.clusters import COMPAT_EPS, WITHOUT, available, clusters
from castle.mind.consolidation.patterns import Proposal, examples, propose
from castle.store.mind_cycles import Columns
from castle.store.mind_episodes import episodes_by_id
from castle.store.mind_index import drawer_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

MOST = 5_000
"""Episodes that a cycle clusters."""
MOST_NEW = 4_000
LATE_KEPT = 5_000
COMPAT_BATCH = 100
"""The latest episodes, which are all that the former system looked at."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far earlier cycles have looked: up to the row ``to``, but for ``late`` ones without a vector then.

    ``waiting`` is how many new episodes are left for the next cycle.
    """

    to: int = -1
    late: tuple[int, ...] = ()
    waiting: int = 0

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Seen:
        """Return what the result of the last cycle tells."""
        return cls(int(result.get("clustered_to", -1)), tuple(result.get("late", ())))

    def kept(self) -> dict[str, Any]:
        """Return what the result of this cycle is to tell."""
        return {"clustered_to": self.to, "late": list(self.late)}


@dataclass(frozen=True, slots=True)
class Sought:
    """What was found: proposals, the texts of their members, how far it came, and what is missing."""

    proposals: tuple[Proposal, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()


def search(
    palace: Palace,
    found: Columns,
    usable: NDArray[np.bool_],
    labels: NDArray[np.int64],
    least: float,
    seen: Seen,
    *,
    compat: bool = False,
) -> Sought:
    """Look for patterns among ``usable`` episodes; nothing is written and no model is asked.

    ``labels`` are the families, ``least`` the cosine from which two episodes say much the same. Without
    scikit-learn nothing is looked at, and the notes say so.
    """
    if not available():
        return Sought(seen=Seen(seen.to, seen.late), notes=(WITHOUT,))
    try:
        return _search(palace, found, usable, labels, least, seen, compat)
    except CastleError as error:
        return Sought(seen=Seen(seen.to, seen.late), notes=(str(error),))


def _search(
    palace: Palace,
    found: Columns,
    usable: NDArray[np.bool_],
    labels: NDArray[np.int64],
    least: float,
    seen: Seen,
    compat: bool,
) -> Sought:
    places, after = _compat_places(found, usable) if compat else _places(found, usable, labels, seen)
    proposals: list[Proposal] = []
    texts: dict[str, str] = {}
    with palace.ledger.read() as cx:
        vectors = drawer_vectors(palace, cx, [found.ids[place] for place in places])
        wings: dict[str, list[str]] = {}
        for place in places:
            if found.ids[place] in vectors:
                wings.setdefault(found.wings[place], []).append(found.ids[place])
        for wing, ids in sorted(wings.items()):
            earlier = examples(palace, cx, wing, least)
            parts = _parts({id_: vectors[id_] for id_ in ids}, least, compat)
            members = episodes_by_id(cx, [id_ for part in parts for id_ in part])
            for part in parts:
                known = [members[id_] for id_ in part if id_ in members and members[id_].role != "tool"]
                if len(known) >= 3:
                    matrix = _stacked([vectors[member.id] for member in known])
                    proposals += propose(cx, known, matrix, [range(len(known))], earlier)
                    texts.update((member.id, member.text) for member in known)
    return Sought(tuple(proposals), texts, after)


def _places(
    found: Columns, usable: NDArray[np.bool_], labels: NDArray[np.int64], seen: Seen
) -> tuple[list[int], Seen]:
    """Return the places of new episodes and of the latest of their families that came before them."""
    import numpy as np

    known = ~np.isnan(found.cosine)
    late = np.isin(found.rid, np.array(seen.late, dtype=np.int64))
    fresh = np.flatnonzero(usable & known & ((found.rid > seen.to) | late))
    taken, left = fresh[:MOST_NEW], len(fresh) - len(fresh[:MOST_NEW])
    everything = left == 0
    to = int(found.rid[-1]) if everything else int(max(seen.to, found.rid[taken].max(initial=-1)))
    missing = found.rid[usable & ~known & ((found.rid <= to) & ((found.rid > seen.to) | late))]
    # Those that wait for a later cycle are no help here: no pattern is known yet that they are part of.
    family = usable & known & np.isin(labels, labels[taken]) & (found.rid <= to)
    family[taken] = False
    kin = np.flatnonzero(family)[::-1][: MOST - len(taken)]
    chosen = np.sort(np.concatenate([taken, kin]))
    still = [
        int(rid) for rid in found.rid[late & known & usable] if rid not in set(found.rid[taken].tolist())
    ]
    waiting = (*still, *(int(rid) for rid in missing))[:LATE_KEPT]
    return [int(place) for place in chosen], Seen(to, waiting, left)


def _compat_places(found: Columns, usable: NDArray[np.bool_]) -> tuple[list[int], Seen]:
    import numpy as np

    latest = np.flatnonzero(usable & ~np.isnan(found.cosine))[-COMPAT_BATCH:]
    return [int(place) for place in latest], Seen(int(found.rid[-1]) if len(found) else -1)


def _parts(vectors: Mapping[str, NDArray[np.float32]], least: float, compat: bool) -> list[list[str]]:
    ids = list(vectors)
    if compat:
        wide = _stacked([separation.dense(separation.project(vector)) for vector in vectors.values()])
        return [[ids[place] for place in part] for part in clusters(wide, 1 - COMPAT_EPS, closer=0)]
    return [[ids[place] for place in part] for part in clusters(_stacked(list(vectors.values())), least)]


def _stacked(vectors: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    import numpy as np

    if not vectors:
        raise CastleError("there are no vectors to look at")
    return np.stack(vectors)
