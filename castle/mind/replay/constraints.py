"""The ten constraints that keep noise out of replay, each a check of its own.

A check says whether it passed and why. Checks are about numbers and ids that others have gathered: they read
nothing and change nothing. Limits of similarity are MiniLM's, unless those of another embedder are given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

REMOTE = 0.3
WALK_STEPS, REMOTE_DEPTH = 3, 2
CROSS_DOMAIN = 0.6
BELIEVED = 0.7
STRONG_CONTRADICTION = -0.3
RELATED = 0.85
BANAL = 0.95
STABLE_CYCLES = 3
LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.1, 0.3
PER_CYCLE = 10
REJECTED_AFTER = 3
REJECTED_TOPIC = 0.1
"""The factor for a seed that speaks of what was rejected."""

NAMES = (
    "remote_seed",
    "bounded_walk",
    "cross_domain",
    "no_contradiction",
    "not_banal",
    "two_sources",
    "stability",
    "initial_confidence",
    "cycle_cap",
    "rejection_memory",
)


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a constraint holds, and in words what was looked at."""

    name: str
    passed: bool
    detail: str = ""


def remote_seed(similarities: Iterable[float], limit: float = REMOTE) -> Check:
    """One seed at least is far from the theme, or from the first seed where there is no theme."""
    found = list(similarities)
    least = min(found, default=1.0)
    return Check("remote_seed", least < limit, f"the farthest seed has a cosine of {least:.2f}")


def bounded_walk(depths: Sequence[int]) -> Check:
    """A walk has three steps at the most, and stays within two hops of its seed.

    ``depths`` are how many hops each place of it is away from the seed, in order, the seed left out.
    """
    deepest = max(depths, default=0)
    fits = len(depths) <= WALK_STEPS and deepest <= REMOTE_DEPTH
    return Check("bounded_walk", fits, f"{len(depths)} steps, {deepest} hops")


def cross_domain(similarity: float, limit: float = CROSS_DOMAIN) -> Check:
    """What is joined is not alike."""
    return Check("cross_domain", similarity < limit, f"cosine {similarity:.2f}")


def no_contradiction(
    believed: Mapping[str, float], opposed: Mapping[str, float], denied: Collection[str] = ()
) -> Check:
    """Nothing that is firmly believed speaks against it.

    ``believed`` are confidences of facts about the same; ``opposed`` weights of edges by which one of them
    contradicts what the hypothesis rests on; ``denied`` those that say the same with the opposite sign.
    """
    for id_, confidence in believed.items():
        if confidence < BELIEVED:
            continue
        if opposed.get(id_, 0.0) < STRONG_CONTRADICTION:
            return Check("no_contradiction", False, f"{id_} contradicts what it rests on")
        if id_ in denied:
            return Check("no_contradiction", False, f"{id_} says the opposite")
    return Check("no_contradiction", True)


def not_banal(similarity: float, limit: float = BANAL) -> Check:
    """It is not what is known already."""
    return Check("not_banal", similarity <= limit, f"the nearest fact has a cosine of {similarity:.2f}")


def two_sources(first: Collection[str], second: Collection[str]) -> Check:
    """It rests on two seeds that do not rest on the same.

    ``first`` and ``second`` are the witnesses of the two: the sessions or drawers they were stated in, the
    seed itself where it has none.
    """
    independent = bool(set(first) - set(second)) and bool(set(second) - set(first))
    return Check("two_sources", independent, "" if independent else "both seeds rest on the same")


def stability(cycles: int, *, confirmed: bool = False) -> Check:
    """Three distinct cycles came to it, or a person confirmed it; before that it is not put into mind."""
    return Check("stability", confirmed or cycles >= STABLE_CYCLES, f"{cycles} cycles came to it")


def initial_confidence(confidence: float) -> Check:
    """It begins with a confidence between 0.1 and 0.3."""
    fits = LEAST_CONFIDENCE <= confidence <= MOST_CONFIDENCE
    return Check("initial_confidence", fits, f"confidence {confidence:.2f}")


def cycle_cap(added: int) -> Check:
    """A cycle adds ten hypotheses at the most; ``added`` is how many it has added."""
    return Check("cycle_cap", added < PER_CYCLE, f"{added} were added")


def rejection_memory(similarities: Iterable[float], limit: float = RELATED) -> Check:
    """It is not what was rejected before; ``similarities`` are those to rejected hypotheses."""
    most = max(similarities, default=-1.0)
    return Check("rejection_memory", most < limit, f"a rejected one has a cosine of {most:.2f}")


def rejected(ignored: int) -> bool:
    """Whether a hypothesis was turned down often enough: three times."""
    return ignored >= REJECTED_AFTER


def topic_factor(topics: Collection[str], refused: Collection[str]) -> float:
    """Return the factor by which rejected topics lower the chance of a seed."""
    return REJECTED_TOPIC if set(topics) & set(refused) else 1.0


def within(confidence: float) -> float:
    """Return a confidence within the bounds of a beginning."""
    return min(max(confidence, LEAST_CONFIDENCE), MOST_CONFIDENCE)
