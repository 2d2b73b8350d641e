"""How near the mind keeps what a search finds. A search looks at it only where it is asked to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from castle.records import Drawer, Remembered, SearchResult
from castle.search.candidates import Candidate
from castle.search.options import Options
from castle.search.run import Run
from castle.store.mind_episodes import episodes_by_id, stated_by
from castle.store.mind_facts import facts
from castle.store.mind_procedures import procedures
from castle.store.mind_rows import has_mind
from castle.store.mind_values import EPISODE_KINDS
from castle.store.palace import Palace

STAGE = "retention"

KEPT: Mapping[str, float] = {"active": 1.0, "dim": 0.925, "cold": 0.85}
"""The most that a score is multiplied by, for how near a thing is kept."""
FACTOR_LEAST = 0.85
LOWEST, HIGHEST = 1.31, 3.31
"""Scores that count for a factor of 0.85 and of 1; the lowest is an old neutral episode's."""


def retention_factor(value: float | None) -> float:
    """Return the factor, between 0.85 and 1, by which an episode of some score counts.

    One that was never scored counts in full.
    """
    if value is None or math.isnan(value):
        return 1.0
    part = (value - LOWEST) / (HIGHEST - LOWEST)
    return FACTOR_LEAST + (1 - FACTOR_LEAST) * min(max(part, 0.0), 1.0)


def retention(state: str, score: float | None = None) -> float:
    """Return the factor, between 0.85 and 1, for a state and a score of consolidation."""
    return min(KEPT.get(state, 1.0), retention_factor(score))


def weighed(one: Remembered, weight: float) -> float:
    """Return 1 - weight + weight * retention; what has expired counts as what is cold."""
    state = "cold" if one.invalidated_at is not None else one.state
    return 1.0 - weight + weight * retention(state, one.consolidation_score)


def put_away(one: Remembered) -> str:
    """Return why a recall leaves a memory out: ``expired``, ``cold``, or "" where it does not."""
    return "expired" if one.invalidated_at is not None else "cold" if one.state == "cold" else ""


def remembered(cx: Connection, ids: Sequence[str]) -> dict[str, Remembered]:
    """Return what the mind holds of drawers; of files it holds nothing.

    Where a fact or a procedure was stated, that counts: of several the one that is kept nearest.
    """
    if not has_mind(cx):
        return {}
    owners = stated_by(cx, ids)
    stated = {owner for found in owners.values() for owner in found}
    whole: dict[str, Any] = {"include_expired": True, "include_cold": True, "limit": len(stated) or 1}
    held: dict[tuple[str, str], Remembered] = {}
    for kind, layer, read in (("fact", "semantic", facts), ("procedure", "procedural", procedures)):
        for one in read(cx, ids=[id_ for owner, id_ in stated if owner == kind], **whole):
            held[kind, one.id] = Remembered(
                one.id,
                layer,
                one.state,
                one.pinned,
                one.invalidated_at,
                confidence=getattr(one, "confidence", None),
                lifecycle=one.lifecycle,
            )
    found: dict[str, Remembered] = {}
    for id_, episode in episodes_by_id(cx, ids, texts=False).items():
        choice = [held[owner] for owner in owners.get(id_, ()) if owner in held]
        if choice:
            found[id_] = max(choice, key=lambda one: (not put_away(one), KEPT[one.state]))
        elif episode.kind in EPISODE_KINDS:
            found[id_] = Remembered(
                id_,
                "episodic",
                episode.state,
                episode.pinned,
                episode.invalidated_at,
                consolidation_score=episode.score,
            )
    return found


def looked_up(
    palace: Palace, run: Run, drawers: Mapping[str, Drawer], options: Options
) -> tuple[dict[str, Drawer], Mapping[str, float], Mapping[str, int]]:
    """Return the drawers that may be shown, factors for how near they are kept, and how many were left out.

    Nothing is looked at unless the options ask for it.
    """
    factors: dict[str, float] = {}
    hidden: dict[str, str] = {}

    def work() -> list[Candidate]:
        with palace.ledger.read() as cx:
            found = remembered(cx, list(drawers))
        for id_, one in found.items():
            if options.hide_cold and (reason := put_away(one)):
                hidden[id_] = reason
            elif options.retention_weight:
                factors[id_] = weighed(one, options.retention_weight)
        return []

    if options.hide_cold or options.retention_weight:
        run.stage("memory", work)
    shown = {id_: drawer for id_, drawer in drawers.items() if id_ not in hidden}
    return shown, factors, dict(Counter(hidden.values()))


def with_memory(palace: Palace, result: SearchResult) -> SearchResult:
    """Return a result whose hits say what the mind holds of them."""
    with palace.ledger.read() as cx:
        found = remembered(cx, [hit.id for hit in result.hits])
    return replace(result, hits=tuple(replace(hit, memory=found.get(hit.id)) for hit in result.hits))
