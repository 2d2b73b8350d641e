"""Preferences: learned from what people say themselves, confirmed by them, shown where they matter.

A candidate comes from cues in a person's own messages or from a model that cites them; nothing that a machine
wrote is read. The same messages read again change nothing. A candidate becomes a preference, and a fact, when
a person confirms it or puts it in by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from castle.errors import UsageError
from castle.llm.base import LlmError, Provider
from castle.llm.budget import for_purpose
from castle.mind.conditions.verifying import attach, check_expression, condition_of
from castle.mind.emotion import score
from castle.mind.preferences.changes import (
    CUE_CEILING,
    INITIAL,
    change,
    confirm,
    decay,
    take_in,
    weigh,
)
from castle.mind.preferences.conflicting import conflicts, note_conflicts
from castle.mind.preferences.showing import check_type, for_recall, for_wake_up, preferences
from castle.mind.preferences.signals import Signal, signals, topic_of
from castle.store.mind_preferences import (
    OVER,
    PROMOTE,
    Evidence,
    Preference,
    add_evidence,
    add_preference,
    cited,
    count_by_status,
    evidence_of,
    get_preference,
    preferences_where,
    set_fields,
)
from castle.store.mind_rows import get_meta, norm_hash, resolve, set_meta
from castle.store.mind_said import Said, occasion, row_before_last, said_after
from castle.text.served import mask_secrets

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from castle.store.palace import Palace

__all__ = [
    "conflicts",
    "detect",
    "extract",
    "feedback",
    "for_recall",
    "for_wake_up",
    "implicit_feedback",
    "inject",
    "preferences",
    "status",
]

BY_HAND = 0.7
MANUAL, HELPED, HINDERED = 0.1, 0.03, -0.05
"""What feedback changes: a person's word, and the outcome of a procedure that came of a preference."""
LLM_CEILING = 0.59
"""What a model's reading alone can reach: a little less than a confirmed preference has."""

_READ_TO = "preferences.read_to"


def detect(
    palace: Palace, cx: Connection, drawer_id: str, text: str, role: str, valence: float, now: int
) -> int:
    """Take in what one saved episode tells, inside the caller's transaction; return how many signals it has.

    Only a person's own words (``role`` user) tell anything.
    """
    if role != "user":
        return 0
    found = signals(mask_secrets(text, palace.salt), valence, reported=True)
    if not found:
        return 0
    wing, session = occasion(cx, drawer_id)
    for signal in found:
        take_in(
            cx,
            signal,
            drawer=drawer_id,
            wing=wing,
            session=session,
            source="cue",
            actor="preferences",
            now=now,
        )
    return len(found)


def extract(
    palace: Palace,
    *,
    llm: Provider | None = None,
    limit: int = 50,
    session: str | None = None,
    actor: str,
) -> dict[str, Any]:
    """Read people's messages that were not read before, and take in what they tell.

    At first the last ``limit`` are read; ``session`` reads the last ones of that session again. With a
    model, its reading of the messages with signals is taken in too; where it fails, ``notes`` say so. What
    nobody speaks of fades, and conflicts are noted. Messages that were taken in before change nothing.
    """
    if limit < 1:
        raise UsageError(f"limit {limit} reads nothing: give 1 or more")
    with palace.ledger.read() as cx:
        start = _start(cx, limit, session)
        messages = said_after(cx, start, limit, session)
        known = cited(cx, [item.id for item in messages])
    told = [(item, signal) for item in messages for signal in signals(item.text, _valence(item))]
    notes: list[str] = []
    asked = None if llm is None else for_purpose(llm, palace.ledger, "preference")
    read = _ask(asked, [item for item, _ in told if item.id not in known], notes)
    created = 0
    with palace.ledger.write() as cx:
        now = palace.ledger.clock()
        for item, signal in told:
            created += _take(cx, item, signal, "cue", CUE_CEILING, "", actor, now)
        for item, signal, trigger in read:
            created += _take(cx, item, signal, "llm", LLM_CEILING, trigger, actor, now)
        if session is None and messages:
            set_meta(cx, _READ_TO, str(max(int(get_meta(cx, _READ_TO) or 0), messages[-1].rid)))
        faded = decay(cx, actor=actor, now=now)
        found = note_conflicts(palace, cx)
    answer: dict[str, Any] = {
        "candidates_created": created,
        "signals_found": len(told),
        "messages_read": len(messages),
        "faded": faded,
        "conflicts": len(found),
    }
    return answer | ({"notes": notes} if notes else {})


def _start(cx: Connection, limit: int, session: str | None) -> int:
    known = get_meta(cx, _READ_TO) if session is None else None
    return int(known) if known is not None else row_before_last(cx, limit, session)


def _valence(item: Said) -> float:
    return score(item.text)[0] if item.valence is None else item.valence


def _ask(llm: Provider | None, messages: list[Said], notes: list[str]) -> list[tuple[Said, Signal, str]]:
    if llm is None or not messages:
        return []
    from castle.mind.preferences.model import found_by

    try:
        return found_by(llm, list({item.id: item for item in messages}.values()))
    except LlmError as error:
        notes.append(f"the model was not used: {error}")
        return []


def _take(
    cx: Connection,
    item: Said,
    signal: Signal,
    source: str,
    ceiling: float,
    trigger: str,
    actor: str,
    now: int,
) -> int:
    _, new = take_in(
        cx,
        signal,
        drawer=item.id,
        wing=item.wing,
        session=item.session,
        source=source,
        actor=actor,
        now=now,
        ceiling=ceiling,
        trigger=trigger,
    )
    return int(new)


def inject(
    palace: Palace,
    text: str,
    *,
    preference_type: str = "general",
    confidence: float = BY_HAND,
    trigger_context: str | None = None,
    falsifiable_condition: object | None = None,
    wing: str | None = None,
    drawer: str | None = None,
    actor: str,
) -> dict[str, Any]:
    """Put in a preference by hand; from a confidence of 0.6 it stands at once, as a fact.

    The same text again is the one there is, made as sure as is said now. ``drawer`` is where it was stated.
    ``wing`` None lets it hold everywhere. Raises UsageError for an empty text, an unknown type or a condition
    that is wrong.
    """
    check_type(preference_type)
    said = mask_secrets(" ".join(text.split()), palace.salt)
    if not said:
        raise UsageError("the preference is empty: say it in words")
    if isinstance(confidence, bool) or not 0 <= confidence <= 1:
        raise UsageError(f"confidence {confidence} is not between 0 and 1")
    if falsifiable_condition is not None:
        check_expression(falsifiable_condition)
    with palace.ledger.write() as cx:
        now = palace.ledger.clock()
        same = preferences_where(cx, digest=norm_hash(said))
        found = next((item for item in same if item.wing == wing), None)
        if found is None:
            found = _new_by_hand(cx, said, preference_type, trigger_context, wing, drawer, actor, now)
        word = Evidence(drawer, f"by hand:{actor}", "user", found.polarity, 1.0, now)
        known = evidence_of(cx, found.id)
        if not any(item.source == "user" and item.drawer == drawer for item in known):
            add_evidence(cx, found.id, word)
        expression = falsifiable_condition or condition_of(cx, "preference", found.id)
        if expression is not None:
            # Said again, it holds as things are now: they are what a change is measured by.
            attach(palace, cx, "preference", found.id, expression, wing, now)
        delta = confidence - found.confidence
        change(cx, found.id, delta, reason="put in by hand", actor=actor, now=now, by_person=True)
        after = get_preference(cx, found.id)
        if after.status in OVER and after.confidence >= PROMOTE:
            confirm(cx, after, reason="put in by hand again", actor=actor, now=now)
    return {"preference_id": found.id}


def _new_by_hand(
    cx: Connection,
    said: str,
    type_: str,
    trigger: str | None,
    wing: str | None,
    drawer: str | None,
    actor: str,
    now: int,
) -> Preference:
    told = signals(said, reported=True)
    return add_preference(
        cx,
        said,
        type=type_,
        polarity=told[0].polarity if told else 1,
        confidence=INITIAL,
        strength=0.8,
        origin="user",
        topic=told[0].topic if told else topic_of(said.lower()),
        trigger=" ".join((trigger or "").split()),
        drawer=drawer,
        wing=wing,
        actor=actor,
        now=now,
    )


def feedback(palace: Palace, preference_id: str, confirmed: bool, *, actor: str) -> dict[str, Any]:
    """Take a person's word on a preference; its fact and its procedure learn of it.

    Raises NotFoundError for an unknown id.
    """
    return _feedback(
        palace,
        preference_id,
        MANUAL if confirmed else -MANUAL,
        reason="a person confirmed it" if confirmed else "a person denied it",
        by_person=True,
        actor=actor,
    )


def implicit_feedback(palace: Palace, preference_id: str, success: bool, *, actor: str) -> dict[str, Any]:
    """Let a preference learn how a procedure that came of it went; that alone confirms no candidate.

    The procedure has its outcome already, and is left as it is.
    """
    return _feedback(
        palace,
        preference_id,
        HELPED if success else HINDERED,
        reason="its procedure worked" if success else "its procedure failed",
        by_person=False,
        actor=actor,
    )


def _feedback(
    palace: Palace, preference_id: str, delta: float, *, reason: str, by_person: bool, actor: str
) -> dict[str, Any]:
    with palace.ledger.write() as cx:
        now = palace.ledger.clock()
        kind, id_ = resolve(cx, preference_id)
        found = get_preference(cx, id_ if kind == "preference" else preference_id)
        if not by_person and found.status == "pending" and delta > 0:
            delta = max(min(delta, LLM_CEILING - found.confidence), 0.0)
        sure = change(cx, found.id, delta, reason=reason, actor=actor, now=now, by_person=by_person)
        if delta < 0:
            set_fields(cx, found.id, ignore_count=found.ignore_count + 1)
        if by_person:
            weigh(cx, found, delta > 0, reason=reason, actor=actor, now=now)
        status = get_preference(cx, found.id).status
    action = "strengthened" if delta > 0 else "weakened"
    return {"preference_id": found.id, "new_confidence": sure, "action": action, "status": status}


def status(cx: Connection) -> dict[str, Any]:
    """Return preferences in numbers."""
    by_status = count_by_status(cx)
    return {"total": sum(by_status.values()), "by_status": by_status}
