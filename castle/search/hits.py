"""From a ranking to hits: drawers, or the messages and sessions they are parts of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from castle.records import Address, Drawer, Hit, Scope, StageScore
from castle.search.candidates import Candidate
from castle.search.fusion import log_odds, probability
from castle.search.options import Unit
from castle.store.palace import Palace
from castle.store.reading import addresses, copies_of, served, within

SESSIONS = "sessions"
"""The name under which a hit shows the evidence for its session as a whole."""

_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """One result: its best candidate, its score, and its other candidates in order."""

    best: Candidate
    score: float
    parts: tuple[Candidate, ...] = ()


def united(
    candidates: Sequence[Candidate],
    drawers: Mapping[str, Drawer],
    by: Unit,
    evidence: Mapping[str, float] | None = None,
) -> list[Found]:
    """Gather a ranking into results, best first.

    A message or a session has the score of its best drawer, and each further one closes a share of what is
    left to 1: the next a half of its own score, the one after a quarter, and so on (a discounted noisy-or).
    Outside of transcripts the session of a drawer is its source. ``evidence`` is added to the log odds of
    sessions, by source; see ``castle.search.sessions``.
    """
    if by == "drawer":
        return [Found(candidate, candidate.score) for candidate in candidates]
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(_unit(drawers[candidate.id], by), []).append(candidate)
    found = [
        Found(group[0], unit_score([c.score for c in group]), tuple(group[1:])) for group in groups.values()
    ]
    if by == "session" and evidence and found:
        found = _weighed(found, drawers, evidence)
    return sorted(found, key=lambda unit: -unit.score)


def _weighed(
    found: Sequence[Found], drawers: Mapping[str, Drawer], evidence: Mapping[str, float]
) -> list[Found]:
    """Add evidence, the least of all for sources without; the best score stays what it was."""
    least = min(evidence.values())
    speaking = [evidence.get(drawers[unit.best.id].source, least) for unit in found]
    raised = [log_odds(unit.score) + value for unit, value in zip(found, speaking, strict=True)]
    shift = log_odds(max(unit.score for unit in found)) - max(raised)
    places = {value: rank for rank, value in enumerate(sorted(set(speaking), reverse=True), start=1)}
    return [
        replace(
            unit,
            best=replace(
                unit.best, stages={**unit.best.stages, SESSIONS: StageScore(places[value], value - least)}
            ),
            score=probability(odds + shift),
        )
        for unit, odds, value in zip(found, raised, speaking, strict=True)
    ]


def unit_score(scores: Sequence[float]) -> float:
    """Return the score of a unit from those of its drawers, best first, in [0, 1]."""
    left, share = 1.0, 1.0
    for score in scores:
        left *= 1.0 - share * min(max(score, 0.0), 1.0)
        share *= _SHARE
    return 1.0 - left


def _unit(drawer: Drawer, by: Unit) -> tuple[str, ...]:
    if by == "session":
        return (drawer.source,)
    return (drawer.source, drawer.message_id) if drawer.message_id else (drawer.source, "", drawer.id)


def to_hits(
    palace: Palace, found: Sequence[Found], drawers: Mapping[str, Drawer], scopes: Sequence[Scope]
) -> tuple[Hit, ...]:
    """Return the results as they may be shown, each with its copies in the scope it was found in."""
    best = [unit.best for unit in found]
    with palace.ledger.read() as cx:
        ids = [candidate.id for candidate in best]
        inside = {id_: scope for scope in reversed(scopes) for id_ in within(cx, ids, scope)}
        copies: dict[str, list[str]] = {}
        for scope in scopes:
            copies |= copies_of(cx, [c.sha256 for c in best if inside.get(c.id) == scope], scope)
        where = addresses(cx, ids)
    return tuple(
        _hit(drawers[unit.best.id], unit, where[unit.best.id], copies.get(unit.best.sha256, ()))
        for unit in found
        if unit.best.id in inside
    )


def _hit(drawer: Drawer, unit: Found, address: Address, copies: Sequence[str]) -> Hit:
    candidate = unit.best
    return Hit(
        id=drawer.id,
        text=served(drawer),
        score=unit.score,
        wing=drawer.wing,
        room=drawer.room,
        kind=drawer.kind,
        role=drawer.role,
        speaker=drawer.speaker,
        message_id=drawer.message_id,
        source=drawer.source,
        address=address,
        authored_at=drawer.authored_at,
        filed_at=drawer.filed_at,
        state=drawer.state,
        copies=tuple(id_ for id_ in copies if id_ != drawer.id),
        parts=tuple(part.id for part in unit.parts),
        stages=candidate.stages,
        matched=candidate.matched,
        boosts=candidate.boosts,
        entity_match=candidate.entity_match,
        soar_tags=candidate.soar_tags,
        soar_boost=candidate.soar_boost,
        score_pre_soar=candidate.score_pre_soar,
        quality_score=candidate.quality_score,
        quality_tier=candidate.quality_tier,
        quality_boost=candidate.quality_boost,
        score_pre_quality=candidate.score_pre_quality,
    )
