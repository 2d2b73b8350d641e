"""What the mind knows about a text: the episodes and facts nearest to it, by meaning or by words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.errors import ModelError, PalaceBusyError
from castle.mind.thresholds import calibrated
from castle.records import Scope
from castle.search.options import Options
from castle.search.pipeline import search
from castle.store.mind_episodes import ASSERTION, episodes_by_id
from castle.store.mind_facts import facts
from castle.store.mind_index import EMBED_SECONDS, by_vector, by_words, embed_missing
from castle.store.mind_values import EPISODE_KINDS, Episode, Fact
from castle.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

_HASTE = 0.5


@dataclass(frozen=True, slots=True)
class Near:
    """A fact near to a text; ``distance`` is 1 - cosine, or the share of the text's words it lacks."""

    fact: Fact
    distance: float


def vector_of(palace: Palace, text: str) -> NDArray[np.float32] | None:
    """Return the vector of a text, None while no embedder is there."""
    if palace.unready:
        return None
    try:
        return palace.space.embedder.embed_query(text)
    except ModelError:
        return None


def embed_waiting(
    palace: Palace,
    progress: Callable[[int, int], None] | None = None,
    *,
    seconds: float = EMBED_SECONDS,
) -> bool:
    """Give vectors to what has none yet, for some seconds; false while no embedder is there.

    A busy palace goes without.
    """
    if palace.unready:
        return False
    try:
        if not palace.ledger.read_only:
            embed_missing(palace, patience=_HASTE, seconds=seconds, progress=progress)
    except PalaceBusyError:
        return True
    except ModelError:
        return False
    return True


def nearest_episodes(
    palace: Palace, text: str, limit: int, now: int, wing: str | None = None
) -> list[Episode]:
    """Return the episodes nearest to a text, best first: none that expired, is cold, or states a fact."""
    scope = Scope(wing=wing, kinds=EPISODE_KINDS)
    options = Options(mode="fast", now=now)
    hits = [hit.id for hit in search(palace, text, scope, 2 * limit, options).hits]
    with palace.ledger.read() as cx:
        known = episodes_by_id(cx, hits)
    found = [known[id_] for id_ in hits if id_ in known]
    usable = [one for one in found if one.state != "cold" and not one.expired and one.origin != ASSERTION]
    return usable[:limit]


def nearest_facts(
    palace: Palace,
    cx: Connection,
    text: str,
    vector: NDArray[np.float32] | None,
    limit: int,
    wing: str | None = None,
) -> list[Near]:
    """Return the facts nearest to a text that hold and are not cold, nearest first."""
    if vector is not None:
        found = [(m.id, 1 - m.score) for m in by_vector(palace, cx, vector, ("fact",), 5 * limit)]
    else:
        asked = max(len(telling(text)), 1)
        said = by_words(cx, text, ("fact",), 5 * limit)
        found = [(m.id, 1 - min(len(m.matched) / asked, 1.0)) for m in said]
    held = {fact.id: fact for fact in facts(cx, ids=[id_ for id_, _ in found], wing=wing)}
    near = [Near(held[id_], distance) for id_, distance in found if id_ in held]
    return sorted(near, key=lambda one: (one.distance, one.fact.id))[:limit]


def distance_for(palace: Palace, cx: Connection, distance: float) -> float:
    """Return the distance of the palace's embedder that stands for one of MiniLM's."""
    return 1 - calibrated(cx, palace.identity.identity, 1 - distance)


def telling(text: str) -> list[str]:
    """Return the words of a text that say what it is about, in order, each once: those of four letters."""
    return [word for word in dict.fromkeys(words(text)) if len(word) > 3 and not word.isdigit()]
