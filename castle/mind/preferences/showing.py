"""Showing preferences: on request, beside a recall, and when an agent wakes up."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from castle.clock import to_iso
from castle.errors import CastleError, UsageError
from castle.mind.conditions.verifying import condition_of
from castle.mind.preferences.signals import TYPES, topic_of
from castle.mind.thresholds import calibrated
from castle.store.mind_index import vectors_of
from castle.store.mind_preferences import (
    PROMOTE,
    STANDING,
    Preference,
    evidence_of,
    note_pushed,
    preferences_where,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from castle.store.palace import Palace

SHOWN, SHOWN_CHARS, PAUSE_S = 3, 300, 300
"""Preferences beside a recall: how many, how many characters in all, how long none is shown again."""
SHOWN_FROM, NEAR = 0.5, 0.4
"""How sure a preference is that is shown, and how near to the question, by cosine."""


def preferences(
    palace: Palace,
    *,
    context_text: str | None = None,
    min_confidence: float = 0.3,
    preference_type: str | None = None,
    wing: str | None = None,
) -> dict[str, Any]:
    """Return preferences with what speaks for them: the standing ones, of a named type candidates too.

    With a ``context_text`` the most relevant come first, with their ``relevance``.
    """
    check_type(preference_type)
    with palace.ledger.read() as cx:
        found = preferences_where(
            cx,
            statuses=STANDING if preference_type is None else ("pending", *STANDING),
            type=preference_type,
            wing=wing,
        )
        least = max(min_confidence, PROMOTE) if preference_type is None else min_confidence
        rows = [_shown(cx, item) for item in found if item.confidence >= least]
        if context_text is not None and rows:
            near = _relevance(palace, cx, context_text, None, {item.id: item for item in found})
            rows = [row | {"relevance": round(near.get(row["id"], 0.0), 3)} for row in rows]
            rows.sort(key=lambda row: -row["relevance"])
    return {"preferences": rows, "count": len(rows)}


def for_recall(
    palace: Palace,
    query: str,
    vector: NDArray[np.float32] | None,
    *,
    wing: str | None = None,
    now: int,
) -> tuple[Mapping[str, Any], ...]:
    """Return what a recall shows beside its results: standing preferences that bear on the question.

    At most three, 300 characters in all, none again within 300 seconds. Where the palace cannot be written
    now, nobody waits for it, and the time of showing is not noted.
    """
    with palace.ledger.read() as cx:
        found = [
            item
            for item in preferences_where(cx, statuses=STANDING, wing=wing)
            if item.confidence >= SHOWN_FROM
            and (item.last_pushed_at is None or now - item.last_pushed_at >= PAUSE_S * 1_000_000)
        ]
        near = _relevance(palace, cx, query, vector, {item.id: item for item in found}) if found else {}
    bearing = sorted((item for item in found if near.get(item.id, 0.0) > 0), key=lambda i: -near[i.id])
    chosen = _fitting(bearing)
    if chosen and not palace.ledger.read_only:
        with suppress(CastleError), palace.ledger.write(0.0) as cx:
            note_pushed(cx, [item.id for item in chosen], now)
    return tuple(brief(item) | {"relevance": round(near[item.id], 3)} for item in chosen)


def for_wake_up(cx: Connection, wing: str | None = None) -> tuple[Mapping[str, Any], ...]:
    """Return the standing preferences that an agent is woken up with: the surest three in 300 characters."""
    standing = [item for item in preferences_where(cx, statuses=STANDING, wing=wing) if item.standing]
    return tuple(brief(item) for item in _fitting(standing))


def _fitting(found: list[Preference]) -> list[Preference]:
    chosen: list[Preference] = []
    room = SHOWN_CHARS
    for item in found:
        if len(chosen) < SHOWN and len(item.text) <= room:
            chosen.append(item)
            room -= len(item.text)
    return chosen


def brief(item: Preference) -> dict[str, Any]:
    """Return what is shown of a preference wherever it is."""
    return {
        "id": item.id,
        "preference_text": item.text,
        "preference_type": item.type,
        "polarity": item.polarity,
        "confidence": item.confidence,
        "origin": item.origin,
    }


def _relevance(
    palace: Palace,
    cx: Connection,
    query: str,
    vector: NDArray[np.float32] | None,
    found: Mapping[str, Preference],
) -> dict[str, float]:
    """Return how near preferences are to a question: by meaning where there are vectors, else by words.

    Cosines below what counts as near are 0; a shared word is near enough.
    """
    about = topic_of(query.lower())
    near = {
        id_: len(about & (item.topic | topic_of(item.trigger.lower()))) / max(len(about), 1)
        for id_, item in found.items()
    }
    if vector is None and not palace.unready and palace.embedder_loaded:
        vector = palace.embedder.embed_query(query)
    if vector is None:
        return near
    least = calibrated(cx, palace.identity.identity, NEAR)
    for id_, own in vectors_of(palace, cx, "preference", list(found)).items():
        cosine = float(own @ vector)
        if cosine >= least:
            near[id_] = max(near[id_], cosine)
    return near


def _shown(cx: Connection, item: Preference) -> dict[str, Any]:
    known = evidence_of(cx, item.id)
    return brief(item) | {
        "status": item.status,
        "lifecycle": item.lifecycle,
        "signal_strength": item.signal_strength,
        "trigger_context": item.trigger or None,
        "falsifiable_condition": condition_of(cx, "preference", item.id),
        "wing": item.wing,
        "fact_id": item.fact,
        "procedure_id": item.procedure,
        "conflict_with": list(item.conflicts),
        "evidence": [
            {
                "drawer_id": one.drawer,
                "session": one.session,
                "source": one.source,
                "polarity": one.polarity,
                "strength": one.strength,
                "at": to_iso(one.at),
            }
            for one in known
        ],
        "source_episode_ids": [one.drawer for one in known if one.drawer is not None],
        "created_at": to_iso(item.created_at),
        "updated_at": to_iso(item.updated_at),
    }


def check_type(given: str | None) -> None:
    """Raise UsageError for what is no type of preferences."""
    if given is not None and given not in TYPES:
        raise UsageError(f"preference_type {given!r} is none of {', '.join(TYPES)}")
