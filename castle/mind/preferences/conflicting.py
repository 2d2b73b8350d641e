"""Preferences that exclude each other: found, noted, and left to the person."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from castle.mind.preferences.choices import excluded, rivals
from castle.mind.preferences.showing import brief
from castle.mind.preferences.signals import SAME_TOPIC, alike, opposed
from castle.mind.thresholds import calibrated
from castle.store.mind_index import vectors_of
from castle.store.mind_preferences import STANDING, preferences_where, set_fields

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from castle.store.palace import Palace

CONFLICT = 0.85
"""Cosine of two preferences that are about the same."""
MOST_COMPARED = 200


def conflicts(palace: Palace) -> dict[str, Any]:
    """Return pairs of preferences that exclude each other; nothing is changed by looking."""
    with palace.ledger.read() as cx:
        found = conflicts_in(palace, cx)
    return {"conflicts": found, "count": len(found)}


def conflicts_in(palace: Palace, cx: Connection) -> list[dict[str, Any]]:
    """Return pairs of preferences that exclude each other, by direction or by what they ask for.

    Those that may are ``possible``: only a person can tell.
    """
    found = preferences_where(cx, statuses=("pending", *STANDING), limit=MOST_COMPARED)
    vectors = vectors_of(palace, cx, "preference", [item.id for item in found])
    least = calibrated(cx, palace.identity.identity, CONFLICT)
    gathered = []
    for one, other in combinations(found, 2):
        if one.wing != other.wing and None not in (one.wing, other.wing):
            continue
        if one.type != other.type and "general" not in (one.type, other.type):
            continue
        near = alike(one.topic, other.topic)
        close = (
            one.id in vectors and other.id in vectors and float(vectors[one.id] @ vectors[other.id]) >= least
        )
        reason = possible = ""
        if one.polarity != other.polarity and (near >= SAME_TOPIC or close):
            reason = "one is for what the other is against"
        elif one.polarity == other.polarity and (words := opposed(one.topic, other.topic)):
            reason = f"they want opposite things: {words}"
        elif one.polarity == other.polarity == 1:
            reason = excluded(one.text, other.text) or (possible := rivals(one.text, other.text))
        if reason:
            gathered.append(
                {
                    "preferences": [brief(one), brief(other)],
                    "ids": [one.id, other.id],
                    "similarity": round(near, 3),
                    "reason": reason,
                    "possible": bool(possible),
                    "hint": "deny the one that is wrong: memory_record_preference_feedback, or "
                    "castle memory prefs --feedback ID --no",
                }
            )
    return gathered


def note_conflicts(palace: Palace, cx: Connection) -> list[dict[str, Any]]:
    """Note on each preference which others it is in conflict with; how sure they are stays."""
    found = conflicts_in(palace, cx)
    against: dict[str, list[str]] = {}
    for pair in found:
        if pair["possible"]:
            continue
        for one, other in (pair["ids"], reversed(pair["ids"])):
            against.setdefault(one, []).append(other)
    for item in preferences_where(cx, statuses=("pending", *STANDING), limit=MOST_COMPARED):
        wanted = tuple(sorted(against.get(item.id, ())))
        if wanted != item.conflicts:
            set_fields(cx, item.id, conflicts=wanted)
    return found
