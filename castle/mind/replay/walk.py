"""The first two stages of replay: which facts it starts from, and where a walk along associations leads."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.mind.nearby import telling
from castle.mind.replay.constraints import REMOTE, REMOTE_DEPTH, WALK_STEPS, topic_factor
from castle.store.mind_edges import neighbours
from castle.store.mind_values import Edge, Fact
from castle.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEEDS = 3
WALK_TOP = 3
EXPLOIT = 0.8
WEAK = 0.1
RECENCY_HOURS = 24.0
LEAST_WEIGHT = 0.001
THEME_FLOOR = 0.1
"""What is left of the weight of a seed that has nothing to do with the theme."""
MOST_TOPICS = 5
WALKABLE = ("fact", "drawer", "procedure")

Key = tuple[str, str]
Alike = Callable[[str, str], float]
"""Gives the similarity of two ids."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a walk from a seed came by, the seed first, and how many hops away each later place is."""

    keys: tuple[Key, ...]
    depths: tuple[int, ...]


def weight(
    fact: Fact, now: int, *, valence: float, used: int, refused: Collection[str], near: float | None
) -> float:
    """Return the chance of a fact to be a seed: recency x emotion x novelty x penalty x theme.

    ``valence`` is the mean of the episodes it rests on, ``used`` how often it was a seed, ``refused`` the
    topics of rejected hypotheses, ``near`` its similarity to the theme, None without one.
    """
    hours = max(0, now - fact.updated_at) / 3.6e9
    recency = 1 / (1 + hours / RECENCY_HOURS)
    emotion = 0.5 + 0.5 * abs(valence)
    novelty = 1 / (1 + used)
    theme = 1.0 if near is None else max(near, THEME_FLOOR)
    return max(recency * emotion * novelty * topic_factor(topics_of(fact), refused) * theme, LEAST_WEIGHT)


def sample(
    weights: Mapping[str, float],
    drawn: random.Random,
    alike: Alike,
    to_theme: Mapping[str, float] | None,
    *,
    remote: float = REMOTE,
    count: int = SEEDS,
) -> list[str]:
    """Draw seeds by weight, none twice; one of them is far from the theme, or from the first seed.

    Where none of those drawn is far, the farthest of the others takes the place of the last.
    """
    left = dict(sorted(weights.items()))
    found: list[str] = []
    while left and len(found) < count:
        picked = drawn.choices(list(left), weights=list(left.values()))[0]
        found.append(picked)
        del left[picked]
    if len(found) < 2:
        return found

    def to_anchor(id_: str) -> float:
        return alike(found[0], id_) if to_theme is None else to_theme[id_]

    drawn_far = found[1:] if to_theme is None else found
    if any(to_anchor(id_) < remote for id_ in drawn_far):
        return found
    farthest = min(left, key=lambda id_: (to_anchor(id_), id_), default=None)
    if farthest is not None and to_anchor(farthest) < min(map(to_anchor, drawn_far)):
        found[-1] = farthest
    return found


def walk(cx: Connection, seed: Key, now: int, drawn: random.Random) -> Walk:
    """Walk three steps at the most along outgoing associations, no farther than two hops from the seed.

    Four of five steps take the strongest of the three best; the others a weak one, if there is any.
    """
    depths = {seed: 0}
    trail, at = [seed], seed
    for _ in range(WALK_STEPS):
        open_: list[Edge] = []
        for edge in neighbours(cx, *at, now):
            key = (edge.kind, edge.id)
            deep = min(depths[at] + 1, depths.get(key, WALK_STEPS + 1))
            if edge.outgoing and edge.kind in WALKABLE and edge.weight > 0 and deep <= REMOTE_DEPTH:
                open_.append(edge)
        if not open_:
            break
        edge = _step(open_[:WALK_TOP], drawn)
        following = (edge.kind, edge.id)
        depths[following] = min(depths[at] + 1, depths.get(following, WALK_STEPS + 1))
        trail.append(following)
        at = following
    return Walk(tuple(dict.fromkeys(trail)), tuple(depths[key] for key in trail[1:]))


def topics_of(fact: Fact) -> list[str]:
    """Return what a fact is about: its tags, or else its longest words."""
    given = [tag.casefold() for tag in fact.tags if tag != "pattern"]
    return given or sorted(telling(fact.statement), key=lambda word: (-len(word), word))[:MOST_TOPICS]


def similarity(vectors: Mapping[str, NDArray[np.float32]], texts: Mapping[str, str]) -> Alike:
    """Return the cosine of two ids by their vectors; where one has none, the share of words in common."""
    sets = {id_: set(words(text)) for id_, text in texts.items()}

    def alike(one: str, other: str) -> float:
        if one in vectors and other in vectors:
            return float(vectors[one] @ vectors[other])
        here, there = sets.get(one, set()), sets.get(other, set())
        return len(here & there) / max(len(here | there), 1)

    return alike


def _step(open_: Sequence[Edge], drawn: random.Random) -> Edge:
    if len(open_) == 1 or drawn.random() < EXPLOIT:
        return open_[0]
    weak = [edge for edge in open_[1:] if edge.weight < WEAK]
    return drawn.choice(weak or list(open_[1:]))
