"""The creative pool: hypotheses on their way to being believed or turned down. It needs no language model.

    pending   -> confirmed  a person confirms, and it is believed less than 0.6
    pending   -> promoted   a person confirms, and it is believed 0.6 or more: it becomes a fact (an insight)
    confirmed -> promoted   a person confirms again
    pending, confirmed -> rejected   turned down three times
    promoted  -> rejected   turned down: the insight ends
    pending   -> expired    30 days without a sign, or no room

There is no way back from rejected or expired. An insight is believed 0.75 at the most, cites the seeds of the
hypothesis and is never a seed itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.clock import to_iso
from castle.errors import PalaceBusyError, RefusedError, UsageError
from castle.mind.replay.constraints import rejected, stability
from castle.mind.thresholds import calibrated
from castle.mind.working import HYPOTHESIS_PREFIX, HYPOTHESIS_PRIORITY, HYPOTHESIS_SESSION
from castle.store.mind_facts import INSIGHT_CAP, add_fact, get_fact
from castle.store.mind_hypotheses import (
    STATUSES,
    Hypothesis,
    change,
    count_by_status,
    get_hypothesis,
    hypotheses,
    note_pushed,
)
from castle.store.mind_index import by_vector
from castle.store.mind_rows import resolve, sources_of
from castle.store.mind_state import expire
from castle.store.mind_values import Source
from castle.store.mind_working import add_item, begin_session, items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

CONFIRMATION = 0.3
PROMOTED_FROM = 0.6
INSIGHT_CHARS = 500
MOST = 1_000
TTL_DAYS = 30
SHOWN = 50
PUSHED = 5
PUSH_COSINE = 0.6
_DAY = 86_400_000_000
_ROUNDING = 1e-9


def creative_pool(palace: Palace, status: str | None = None) -> dict[str, Any]:
    """Return the newest 50 hypotheses in a state, the pending ones unless another is named, and all counts.

    Raises UsageError for a state that there is not.
    """
    wanted = status or "pending"
    if wanted not in STATUSES:
        raise UsageError(f"status {status!r} is none of {', '.join(STATUSES)}")
    with palace.ledger.read() as cx:
        found = hypotheses(cx, statuses=(wanted,), limit=SHOWN)
        return {"entries": [shown(one) for one in found], "count_by_status": count_by_status(cx)}


def hypothesis_feedback(palace: Palace, id_: str, confirmed: bool, *, actor: str) -> dict[str, Any]:
    """Take in what a person says of a hypothesis.

    Returns ``action`` (promoted, confirmed, rejected, ignored, or unchanged), ``hypothesis_id``, and
    ``new_confidence`` or ``ignore_count``; ``fact_id`` where it became a fact. Raises RefusedError where its
    state lets it be confirmed no more, UsageError for the id of something else.
    """
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        kind, full = resolve(cx, id_)
        if kind != "hypothesis":
            raise UsageError(f"{id_} is a {kind}: `castle memory pool` lists hypotheses")
        held = get_hypothesis(cx, full)
        told = _confirm(cx, held, actor, now) if confirmed else _reject(cx, held, actor, now)
        return {"hypothesis_id": full, **told}


def status(cx: Connection) -> dict[str, Any]:
    """Return how many hypotheses there are, by state."""
    counts = count_by_status(cx)
    return {"total_hypotheses": sum(counts.values()), "by_status": counts, "replay_available": True}


def tidy(cx: Connection, now: int, *, coming: int = 0) -> int:
    """Let pending hypotheses go that nobody spoke of for 30 days, and the least believed where room is short.

    ``coming`` is for how many there has to be room. Returns how many went; they stay, as expired.
    """
    pending = hypotheses(cx, statuses=("pending",), limit=MOST * 2)
    late = [one for one in pending if one.expires_at is not None and one.expires_at <= now]
    alive = [one for one in pending if one not in late]
    counts = count_by_status(cx)
    over = len(alive) + counts["confirmed"] + coming - MOST
    crowded = sorted(alive, key=lambda one: (one.confidence, one.created_at, one.id))[: max(over, 0)]
    for found, reason in (
        (late, f"nobody spoke of it for {TTL_DAYS} days"),
        (crowded, "no room in the pool"),
    ):
        for one in found:
            change(cx, one, reason=reason, actor="replay", now=now, status="expired")
    return len(late) + len(crowded)


def expiry(now: int) -> int:
    """Return until when a hypothesis stays that nobody speaks of."""
    return now + TTL_DAYS * _DAY


def push_to_working(
    palace: Palace, cx: Connection, context: NDArray[np.float32], *, now: int, limit: int = PUSHED
) -> list[str]:
    """Put the hypotheses nearest to a context into working memory, faintly; returns the new items.

    Only such that are stable: three cycles came to them, or a person confirmed them. None twice.
    """
    least = calibrated(cx, palace.identity.identity, PUSH_COSINE)
    near = [m.id for m in by_vector(palace, cx, context, ("hypothesis",), SHOWN) if m.score > least]
    held = {one.id: one for one in hypotheses(cx, statuses=("pending", "confirmed"), ids=near)}
    there = {item.hypothesis for item in items(cx)}
    made = []
    for id_ in near:
        one = held.get(id_)
        if (
            one is None
            or id_ in there
            or not stability(one.stability, confirmed=one.status == "confirmed").passed
        ):
            continue
        begin_session(cx, HYPOTHESIS_SESSION, now)
        item = add_item(
            cx,
            HYPOTHESIS_PREFIX + one.text,
            session=HYPOTHESIS_SESSION,
            salt=palace.salt,
            now=now,
            wing=one.wing or "",
            base_priority=HYPOTHESIS_PRIORITY,
            hypothesis=id_,
        )
        note_pushed(cx, id_, now)
        made.append(item.id)
        if len(made) >= limit:
            break
    return made


def shown(one: Hypothesis) -> dict[str, Any]:
    """Return a hypothesis as it is listed."""
    return {
        "id": one.id,
        "hypothesis_text": one.text,
        "rationale": one.rationale,
        "confidence": round(one.confidence, 4),
        "status": one.status,
        "origin": "replay",
        "wing": one.wing,
        "stability_count": one.stability,
        "push_count": one.push_count,
        "ignore_count": one.ignore_count,
        "topic_tags": list(one.topics),
        "source_seed_ids": list(one.seeds),
        "source_node_ids": list(one.nodes),
        "concept_pair": list(one.pair),
        "fact_id": one.fact,
        "metadata": dict(one.metadata),
        "created_at": to_iso(one.created_at),
        "last_pushed_at": None if one.last_pushed_at is None else to_iso(one.last_pushed_at),
        "expires_at": None if one.expires_at is None else to_iso(one.expires_at),
    }


def _confirm(cx: Connection, held: Hypothesis, actor: str, now: int) -> dict[str, Any]:
    if held.status == "promoted":
        return {"action": "unchanged", "new_confidence": held.confidence, "fact_id": held.fact}
    if held.status not in ("pending", "confirmed"):
        raise RefusedError(f"{held.id} is {held.status}: it cannot be confirmed any more; save it as a fact")
    confidence = min(held.confidence + CONFIRMATION, 1.0)
    promoted = confidence >= PROMOTED_FROM - _ROUNDING
    state = "promoted" if promoted else "confirmed"
    values: dict[str, Any] = {"confidence": confidence, "status": state}
    _must(change(cx, held, reason="confirmed", actor=actor, now=now, **values))
    told: dict[str, Any] = {"action": state, "new_confidence": confidence}
    if promoted:
        fact = _promote(cx, held, confidence, actor, now)
        after = get_hypothesis(cx, held.id)
        _must(change(cx, after, reason="promoted", actor=actor, now=now, fact=fact))
        told["fact_id"] = fact
    return told


def _promote(cx: Connection, held: Hypothesis, confidence: float, actor: str, now: int) -> str:
    sources = [source for source in sources_of(cx, "hypothesis", held.id) if source.kind != "hypothesis"]
    fact = add_fact(
        cx,
        held.text[:INSIGHT_CHARS],
        confidence=min(confidence, INSIGHT_CAP),
        origin="insight",
        actor=actor,
        now=now,
        wing=held.wing,
        sources=[*sources, Source("hypothesis", held.id, session=held.id)],
        tags=held.topics,
        metadata={"source": "hypothesis", "hypothesis": held.id, "original_confidence": held.confidence},
    )
    return fact.id


def _reject(cx: Connection, held: Hypothesis, actor: str, now: int) -> dict[str, Any]:
    if held.status in ("rejected", "expired"):
        return {"action": "unchanged", "ignore_count": held.ignore_count}
    count = held.ignore_count + 1
    if held.status == "promoted":
        if held.fact is not None and get_fact(cx, held.fact).origin == "insight":
            expire(cx, "fact", held.fact, reason=f"{held.id} was turned down", actor=actor, now=now)
        values: dict[str, Any] = {"ignore_count": count, "status": "rejected"}
    else:
        values = {"ignore_count": count, "status": "rejected" if rejected(count) else held.status}
    _must(change(cx, held, reason="turned down", actor=actor, now=now, **values))
    action = "rejected" if values["status"] == "rejected" else "ignored"
    return {"action": action, "ignore_count": count}


def _must(changed: bool) -> None:
    if not changed:
        raise PalaceBusyError("somebody else has just said something of this hypothesis: look at it again")
