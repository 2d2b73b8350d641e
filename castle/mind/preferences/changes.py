"""How sure a preference is, and what follows from that: the one way in which it changes.

From 0.6 on it is confirmed and becomes one fact, and one procedure where it has a trigger; below 0.2 it is
rejected. What a person's words tell without being asked reaches 0.5 at most, and only by two occasions or
more: the last step is the person's own confirmation.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from sqlalchemy import Connection

from castle.mind.preferences.choices import excluded
from castle.mind.preferences.signals import SAME_TOPIC, Signal, alike
from castle.store.mind_facts import add_fact, change_confidence, get_fact
from castle.store.mind_preferences import (
    OVER,
    PROMOTE,
    REJECT,
    Evidence,
    Preference,
    add_evidence,
    add_preference,
    end_consequences,
    evidence_of,
    get_preference,
    preferences_where,
    set_confidence,
    set_fields,
    set_status,
)
from castle.store.mind_procedures import add_procedure, change_weight, get_procedure
from castle.store.mind_state import unexpire
from castle.store.mind_values import Origin, Source

INITIAL = 0.3
"""Confidence of what was said once."""
CUE_CEILING = 0.5
"""What cues alone can reach."""
AGAIN = 0.02
"""What a further occasion adds."""
STRENGTH_OF_ONE = 0.15
DECAY_PER_DAY, DECAY_MOST, DECAY_LEAST = 0.03, 0.15, 0.01
RESISTANCE = {"plastic": 1.0, "semi_stable": 0.5, "locked": 0.25}
SUCCESS_FACTOR, FAILURE_FACTOR = 1.05, 0.85
DAY = 86_400_000_000

LIVING = ("pending", "confirmed", "promoted", "rejected")


def take_in(
    cx: Connection,
    signal: Signal,
    *,
    drawer: str,
    wing: str,
    session: str,
    source: str,
    actor: str,
    now: int,
    ceiling: float = CUE_CEILING,
    trigger: str = "",
) -> tuple[Preference, bool]:
    """Let a signal speak for the preference that says the same, or begin one; return it, and if it is new.

    The same drawer speaks once. What was rejected stays so, and gathers evidence. A preference of which two
    wings tell holds everywhere.
    """
    evidence = Evidence(drawer, session, source, signal.polarity, signal.strength, now)
    found = _same(cx, signal, wing)
    if found is None:
        found = add_preference(
            cx,
            signal.text,
            type=signal.type,
            polarity=signal.polarity,
            confidence=INITIAL,
            strength=STRENGTH_OF_ONE,
            origin=source,
            topic=signal.topic,
            trigger=trigger,
            drawer=drawer,
            wing=wing or None,
            actor=actor,
            now=now,
        )
        add_evidence(cx, found.id, evidence)
        return found, True
    before = occasions(evidence_of(cx, found.id))
    if not add_evidence(cx, found.id, evidence):
        return found, False
    known = evidence_of(cx, found.id)
    set_fields(cx, found.id, signal_strength=min(STRENGTH_OF_ONE * len(known), 1.0), updated_at=now)
    if found.wing is not None and wing and wing != found.wing:
        set_fields(cx, found.id, wing=None)
    if found.status not in OVER and occasions(known) > before:
        change(cx, found.id, _gain(found, known, ceiling), reason="said again", actor=actor, now=now)
    return get_preference(cx, found.id), False


def occasions(evidence: Sequence[Evidence]) -> int:
    """Return on how many occasions something was said: sessions, and what belongs to none by drawer."""
    return len({item.session or item.drawer for item in evidence if item.polarity})


def _gain(found: Preference, evidence: Sequence[Evidence], ceiling: float) -> float:
    """Return what the evidence adds: up to its mean strength, then a little for each occasion."""
    if found.confidence >= PROMOTE:
        return AGAIN
    shown = min(fmean(item.strength for item in evidence), ceiling)
    return max(min(max(shown, found.confidence + AGAIN), ceiling) - found.confidence, 0.0)


def _same(cx: Connection, signal: Signal, wing: str) -> Preference | None:
    """Return the preference that a signal speaks for: the nearest in words, of the same direction."""
    best: tuple[float, Preference] | None = None
    for found in preferences_where(cx, statuses=LIVING):
        if found.polarity != signal.polarity or not _fits(found.type, signal.type):
            continue
        near = alike(found.topic, signal.topic) + (0.001 if found.wing in (wing, None) else 0.0)
        if near < SAME_TOPIC or excluded(found.text, signal.text):
            continue
        if best is None or near > best[0]:
            best = (near, found)
    return best[1] if best else None


def _fits(one: str, other: str) -> bool:
    return one == other or "general" in (one, other)


def change(
    cx: Connection, id_: str, delta: float, *, reason: str, actor: str, now: int, by_person: bool = False
) -> float:
    """Raise or lower how sure a preference is and return it; its fact goes along, and its status.

    Only a person's word (``by_person``) brings back what was rejected or expired.
    """
    found = get_preference(cx, id_)
    if found.status in OVER and not (by_person and delta > 0):
        return found.confidence
    sure = set_confidence(cx, id_, found.confidence + delta, reason=reason, actor=actor, now=now)
    _follow(cx, found, sure, delta, reason=reason, actor=actor, now=now)
    return sure


def _follow(
    cx: Connection, found: Preference, sure: float, delta: float, *, reason: str, actor: str, now: int
) -> None:
    if sure >= PROMOTE and found.status not in ("confirmed", "promoted"):
        confirm(cx, get_preference(cx, found.id), reason=reason, actor=actor, now=now)
        return
    if found.fact is not None and found.fact in found.owned and found.status not in OVER:
        change_confidence(
            cx, found.fact, delta, reason=f"preference: {reason}", actor=actor, now=now, evidence=[found.id]
        )
    if sure < REJECT and found.status not in OVER:
        set_status(cx, found.id, "rejected", reason=reason, actor=actor, now=now)
        end_consequences(cx, found, reason=reason, actor=actor, now=now)


def confirm(cx: Connection, found: Preference, *, reason: str, actor: str, now: int) -> None:
    """Make a preference a fact, once, and a procedure where something triggers it."""
    set_status(cx, found.id, "confirmed", reason=reason, actor=actor, now=now)
    known = evidence_of(cx, found.id)
    told = [
        Source("drawer", item.drawer, "supports" if item.polarity == found.polarity else "contradicts",
               session=item.session)
        for item in known
        if item.drawer is not None
    ]  # fmt: skip
    origin: Origin = "user" if found.origin == "user" else "preference"
    owned = list(found.owned)
    fact, procedure = found.fact, found.procedure
    if fact is None:
        about = {"preference_id": found.id, "preference_type": found.type, "polarity": found.polarity}
        made = add_fact(
            cx,
            found.text,
            confidence=found.confidence,
            origin=origin,
            actor=actor,
            now=now,
            drawer=found.drawer if origin == "user" else None,
            wing=found.wing,
            sources=told,
            metadata=about,
        )
        fact = made.id
        owned += [fact] if made.metadata.get("preference_id") == found.id and made.created_at == now else []
    else:
        _again(cx, "fact", fact, found, reason, actor, now)
    if found.trigger and procedure is None:
        way = add_procedure(
            cx,
            found.text,
            origin=origin,
            actor=actor,
            now=now,
            trigger=found.trigger,
            task_type=f"preference_{found.type}",
            preference=found.id,
            wing=found.wing,
            sources=told,
        )
        procedure = way.id
        owned += [procedure] if way.preference == found.id else []
    elif procedure is not None:
        _again(cx, "procedure", procedure, found, reason, actor, now)
    set_fields(cx, found.id, fact=fact, procedure=procedure, owned=owned)


def _again(cx: Connection, kind: str, id_: str, found: Preference, reason: str, actor: str, now: int) -> None:
    if id_ not in found.owned:
        return
    unexpire(cx, kind, id_, reason=reason, actor=actor, now=now)
    if kind == "fact":
        missing = found.confidence - get_fact(cx, id_).confidence
        change_confidence(cx, id_, missing, reason=reason, actor=actor, now=now, evidence=[found.id])


def weigh(cx: Connection, found: Preference, helped: bool, *, reason: str, actor: str, now: int) -> None:
    """Let feedback on a preference reach its procedure."""
    if found.procedure is None:
        return
    factor = SUCCESS_FACTOR if helped else FAILURE_FACTOR
    weight = get_procedure(cx, found.procedure).weight * factor
    change_weight(cx, found.procedure, weight, reason=reason, actor=actor, now=now, evidence=[found.id])


def decay(cx: Connection, *, actor: str, now: int) -> int:
    """Let what nobody has spoken of fade, by whole days since, and return how many did.

    What a person put in by hand does not; what is firmer fades more slowly.
    """
    faded = 0
    for found in preferences_where(cx, statuses=("pending", "confirmed", "promoted")):
        if found.origin == "user":
            continue
        days = (now - max(found.updated_at, found.decayed_at or 0)) // DAY
        amount = min(DECAY_PER_DAY * days, DECAY_MOST) * RESISTANCE[found.lifecycle]
        if amount < DECAY_LEAST:
            continue
        reason = f"nobody spoke of it for {days} days"
        sure = set_confidence(
            cx, found.id, found.confidence - amount, reason=reason, actor=actor, now=now, decayed=True
        )
        _follow(cx, found, sure, -amount, reason=reason, actor=actor, now=now)
        faded += 1
    return faded
