"""Procedural memory: which ways of doing something a situation calls to mind, and how they went.

A procedure matches where its trigger is near to the situation, or shares words with it while no embedder is
there. Every outcome multiplies its weight by 1.05 or 0.85; beside that stands what is known of its rate of
success, the mean of a Beta posterior and the lower bound of Wilson's interval. To explore is to put a match
that is less proven first: a fifth of the time where that is asked for, and never where an answer is cited.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from castle.mind.thresholds import TRIGGER, calibrated
from castle.store.mind_index import Match, by_vector, by_words
from castle.store.mind_procedures import FLOOR, note_triggered, procedures, variants
from castle.store.mind_values import Procedure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

EXPLORE_RATIO = 0.2
TOP_K = 5
LEAST_USES = 3
"""Outcomes that both of two variants need before one is called better."""
_POOL = 200


@dataclass(frozen=True, slots=True)
class Trigger:
    """A procedure that a situation calls to mind: by meaning, with its cosine, or by words.

    ``explore`` marks one that was put first though it is not the best match.
    """

    procedure: Procedure
    similarity: float | None
    matched: tuple[str, ...] = ()
    explore: bool = False


@dataclass(frozen=True, slots=True)
class Better:
    """A variant that did better than another: the lower bound of one is above the estimate of the other."""

    best: Procedure
    other: Procedure


def match(
    palace: Palace,
    cx: Connection,
    text: str,
    vector: NDArray[np.float32] | None,
    *,
    threshold: float = TRIGGER,
    top_k: int = TOP_K,
    explore_ratio: float = 0.0,
    seed: int | None = None,
    wing: str | None = None,
) -> list[Trigger]:
    """Return the procedures that a situation calls to mind, the best match first.

    ``vector`` is that of the text, None while there is no embedder. ``explore_ratio`` is how often one of the
    others comes first, drawn with a chance of 1 - weight; ``seed`` makes that repeatable. A procedure at the
    floor of weights comes to mind only by that way.
    """
    found = _near(palace, cx, vector, threshold) if vector is not None else []
    by_word = by_words(cx, text, ("procedure",), _POOL)
    known = {m.id for m in found}
    usable = {
        p.id: p for p in procedures(cx, wing=wing, ids=[m.id for m in (*found, *by_word)], limit=2 * _POOL)
    }
    triggers = [Trigger(usable[m.id], m.score) for m in found if m.id in usable]
    rest = [Trigger(usable[m.id], None, m.matched) for m in by_word if m.id in usable and m.id not in known]
    ranked = [*triggers, *rest] if vector is None or not triggers else triggers
    proven = [one for one in ranked if one.procedure.weight > FLOOR][:top_k]
    if explore_ratio <= 0:
        return proven
    drawn = random.Random(seed)
    floored = [one for one in ranked if one.procedure.weight <= FLOOR]
    others = [*proven[1:], *floored]
    if not others or drawn.random() >= explore_ratio:
        return proven
    chances = [max(1.0 - one.procedure.weight, 0.01) for one in others]
    picked = drawn.choices(others, weights=chances)[0]
    rest_of = [one for one in proven if one is not picked]
    return [replace(picked, explore=True), *rest_of][:top_k]


def better_variants(cx: Connection, id_: str) -> list[Better]:
    """Return the pairs among variants of a procedure of which one surely does better than the other."""
    used = [one for one in variants(cx, id_) if one.uses >= LEAST_USES]
    return [
        Better(best, other)
        for best in used
        for other in used
        if best.id != other.id and best.lower > other.estimate
    ]


def triggered(cx: Connection, found: Sequence[Trigger], now: int) -> None:
    """Note that these came to mind."""
    note_triggered(cx, [one.procedure.id for one in found], now)


def _near(palace: Palace, cx: Connection, vector: NDArray[np.float32], threshold: float) -> list[Match]:
    least = calibrated(cx, palace.identity.identity, threshold)
    return [m for m in by_vector(palace, cx, vector, ("procedure",), _POOL) if m.score >= least]
