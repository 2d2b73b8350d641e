"""Rows of preferences and of what speaks for them; always inside the caller's transaction.

One row is one preference. It is pending until it is confirmed, and can be rejected or expire; each change
goes through ``set_status`` or ``set_confidence`` and leaves a row of history.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, delete, insert, select, update

from castle.errors import NotFoundError, RefusedError
from castle.store.ledger import batches, to_json
from castle.store.mind_conditions import drop_condition
from castle.store.mind_index import index, unindex
from castle.store.mind_rows import new_id, norm_hash, note_change
from castle.store.mind_tables import mem_preference_evidence, mem_preferences

Status = Literal["pending", "confirmed", "promoted", "rejected", "expired"]
Stage = Literal["plastic", "semi_stable", "locked"]

STANDING: tuple[Status, ...] = ("confirmed", "promoted")
"""What counts as a preference; promoted is a confirmed one of an earlier memory."""
OVER: tuple[Status, ...] = ("rejected", "expired")

MOVES: Mapping[str, tuple[Status, ...]] = {
    "pending": ("confirmed", "rejected", "expired"),
    "confirmed": ("rejected", "expired"),
    "promoted": ("confirmed", "rejected", "expired"),
    "rejected": ("confirmed",),
    "expired": ("confirmed",),
}
"""What a preference can become; only a person's own word brings one back."""

PROMOTE, REJECT = 0.6, 0.2
"""Confidence from which a preference is confirmed, and below which it is rejected."""
SEMI_STABLE, LOCKED = 0.7, 0.9
"""Bounds of the lifecycle of a preference, which are not those of a fact."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A preference; ``polarity`` 1 is for, -1 against, ``fact`` and ``procedure`` are what came of it.

    ``owned`` are those of the two that would not be there without it.
    """

    id: str
    text: str
    type: str
    polarity: int
    confidence: float
    signal_strength: float
    status: Status
    trigger: str
    origin: str
    drawer: str | None
    wing: str | None
    fact: str | None
    procedure: str | None
    conflicts: tuple[str, ...]
    push_count: int
    ignore_count: int
    last_pushed_at: int | None
    decayed_at: int | None
    topic: frozenset[str]
    owned: tuple[str, ...]
    created_at: int
    updated_at: int

    @property
    def lifecycle(self) -> Stage:
        """How firm it is."""
        if self.confidence >= LOCKED:
            return "locked"
        return "semi_stable" if self.confidence >= SEMI_STABLE else "plastic"

    @property
    def standing(self) -> bool:
        """Whether it is a preference and no candidate, and firm enough to be shown."""
        return self.status in STANDING and self.confidence >= PROMOTE


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a preference, or against it: a drawer, or a person's explicit word without one.

    ``session`` tells occasions apart; ``source`` is cue, llm, user or import.
    """

    drawer: str | None
    session: str
    source: str
    polarity: int
    strength: float
    at: int


def add_preference(
    cx: Connection,
    text: str,
    *,
    type: str,
    polarity: int,
    confidence: float,
    strength: float,
    origin: str,
    topic: Collection[str],
    now: int,
    actor: str,
    drawer: str | None = None,
    wing: str | None = None,
    trigger: str = "",
) -> Preference:
    """Write a pending preference and return it; the text is as it may be shown."""
    id_ = new_id("preference")
    cx.execute(
        insert(mem_preferences).values(
            id=id_,
            text=text,
            type=type,
            polarity=polarity,
            confidence=confidence,
            signal_strength=strength,
            status="pending",
            trigger=trigger,
            origin=origin,
            drawer=drawer,
            wing=wing,
            norm_hash=norm_hash(text),
            conflicts_json="[]",
            push_count=0,
            ignore_count=0,
            metadata_json=to_json({"topic": sorted(topic)}),
            created_at=now,
            updated_at=now,
        )
    )
    index(cx, "preference", id_, f"{text}\n{trigger}" if trigger else text)
    note_change(
        cx, "preference", id_, "status", "", "pending", reason=f"origin {origin}", actor=actor, now=now
    )
    return get_preference(cx, id_)


def get_preference(cx: Connection, id_: str) -> Preference:
    """Return a preference; raises NotFoundError."""
    row = cx.execute(select(mem_preferences).where(mem_preferences.c.id == id_)).first()
    if row is None:
        raise NotFoundError(f"the mind holds no preference {id_}: `castle memory prefs` lists them")
    return _preference(row)


def preferences_where(
    cx: Connection,
    *,
    statuses: Sequence[str] | None = None,
    type: str | None = None,
    wing: str | None = None,
    ids: Sequence[str] | None = None,
    digest: str | None = None,
    limit: int = 1000,
) -> list[Preference]:
    """Return preferences, the surest first; those of a wing are its own and those that hold everywhere."""
    query = select(mem_preferences)
    if statuses is not None:
        query = query.where(mem_preferences.c.status.in_(statuses))
    if type is not None:
        query = query.where(mem_preferences.c.type == type)
    if wing is not None:
        query = query.where((mem_preferences.c.wing == wing) | mem_preferences.c.wing.is_(None))
    if ids is not None:
        query = query.where(mem_preferences.c.id.in_(ids))
    if digest is not None:
        query = query.where(mem_preferences.c.norm_hash == digest)
    order = (mem_preferences.c.confidence.desc(), mem_preferences.c.created_at, mem_preferences.c.id)
    return [_preference(row) for row in cx.execute(query.order_by(*order).limit(limit))]


def count_by_status(cx: Connection) -> dict[str, int]:
    """Return how many preferences are in each status."""
    rows = cx.exec_driver_sql("SELECT status, count(*) FROM mem_preferences GROUP BY status")
    return {status: number for status, number in rows}


def add_evidence(cx: Connection, id_: str, evidence: Evidence) -> bool:
    """Write down what speaks for a preference; False where the same drawer has spoken already."""
    known = evidence_of(cx, id_)
    if evidence.drawer is not None and any(item.drawer == evidence.drawer for item in known):
        return False
    cx.execute(
        insert(mem_preference_evidence).values(
            preference=id_,
            drawer=evidence.drawer,
            session=evidence.session,
            source=evidence.source,
            polarity=evidence.polarity,
            strength=evidence.strength,
            at=evidence.at,
        )
    )
    return True


def evidence_of(cx: Connection, id_: str) -> list[Evidence]:
    """Return what speaks for a preference, in the order in which it was written down."""
    table = mem_preference_evidence
    query = select(table).where(table.c.preference == id_).order_by(table.c.rid)
    return [
        Evidence(row.drawer, row.session, row.source, row.polarity, row.strength, row.at)
        for row in cx.execute(query)
    ]


def cited(cx: Connection, drawers: Sequence[str]) -> set[str]:
    """Return those of the drawers that speak for any preference."""
    table = mem_preference_evidence
    return {id_ for (id_,) in cx.execute(select(table.c.drawer).where(table.c.drawer.in_(drawers)))}


def set_status(cx: Connection, id_: str, status: Status, *, reason: str, actor: str, now: int) -> bool:
    """Let a preference become something else; False where it is that, RefusedError where it cannot be."""
    before = get_preference(cx, id_).status
    if before == status:
        return False
    if status not in MOVES[before]:
        raise RefusedError(f"preference {id_} is {before} and cannot become {status}")
    _update(cx, id_, status=status)
    note_change(cx, "preference", id_, "status", before, status, reason=reason, actor=actor, now=now)
    return True


def set_confidence(
    cx: Connection, id_: str, confidence: float, *, reason: str, actor: str, now: int, decayed: bool = False
) -> float:
    """Set how sure a preference is, within [0, 1]; of a decay the time is kept apart from that of a sign."""
    before = get_preference(cx, id_).confidence
    wanted = round(min(max(confidence, 0.0), 1.0), 6)
    if wanted != before:
        _update(cx, id_, confidence=wanted, **{"decayed_at" if decayed else "updated_at": now})
        note_change(cx, "preference", id_, "confidence", before, wanted, reason=reason, actor=actor, now=now)
    return wanted


def set_fields(cx: Connection, id_: str, **values: Any) -> None:
    """Set what is no matter of belief: fact, procedure, wing, trigger, conflicts, owned, signal_strength."""
    if "conflicts" in values:
        values["conflicts_json"] = to_json(list(values.pop("conflicts")))
    if "owned" in values:
        topic = sorted(get_preference(cx, id_).topic)
        values["metadata_json"] = to_json({"topic": topic, "owned": list(values.pop("owned"))})
    _update(cx, id_, **values)


def note_pushed(cx: Connection, ids: Sequence[str], now: int) -> None:
    """Note that preferences were shown."""
    count = mem_preferences.c.push_count + 1
    statement = update(mem_preferences).where(mem_preferences.c.id.in_(ids))
    cx.execute(statement.values(push_count=count, last_pushed_at=now))


def expire_preference(cx: Connection, id_: str, *, reason: str, actor: str, now: int) -> bool:
    """Let a preference be out of date, with its fact and procedure; False where it was over already."""
    found = get_preference(cx, id_)
    if found.status in OVER:
        return False
    set_status(cx, id_, "expired", reason=reason, actor=actor, now=now)
    end_consequences(cx, found, reason=reason, actor=actor, now=now)
    return True


def end_consequences(cx: Connection, found: Preference, *, reason: str, actor: str, now: int) -> None:
    """Let the fact and the procedure of a preference expire that are there because of it alone."""
    from castle.store.mind_state import expire

    for kind, id_ in (("fact", found.fact), ("procedure", found.procedure)):
        if id_ is not None and id_ in found.owned:
            expire(cx, kind, id_, reason=f"preference {found.id}: {reason}", actor=actor, now=now)


def _update(cx: Connection, id_: str, **values: Any) -> None:
    cx.execute(update(mem_preferences).where(mem_preferences.c.id == id_).values(**values))


def _preference(row: Any) -> Preference:
    about = json.loads(row.metadata_json)
    return Preference(
        id=row.id,
        text=row.text,
        type=row.type,
        polarity=row.polarity,
        confidence=row.confidence,
        signal_strength=row.signal_strength,
        status=row.status,
        trigger=row.trigger,
        origin=row.origin,
        drawer=row.drawer,
        wing=row.wing,
        fact=row.fact,
        procedure=row.procedure,
        conflicts=tuple(json.loads(row.conflicts_json)),
        push_count=row.push_count,
        ignore_count=row.ignore_count,
        last_pushed_at=row.last_pushed_at,
        decayed_at=row.decayed_at,
        topic=frozenset(about.get("topic", ())),
        owned=tuple(about.get("owned", ())),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def purge_preferences(cx: Connection, drawers: Collection[str]) -> list[tuple[str, str]]:
    """Delete every preference that holds words of these drawers, and their evidence for others.

    Returns the kinds and ids of what came of them and holds the same words, for the caller to delete.
    """
    table = mem_preference_evidence
    gone: list[tuple[str, str]] = []
    for part in batches(sorted(drawers)):
        cx.execute(delete(table).where(table.c.drawer.in_(part)))
        query = select(mem_preferences).where(mem_preferences.c.drawer.in_(part))
        for found in [_preference(row) for row in cx.execute(query)]:
            owned = (("fact", found.fact), ("procedure", found.procedure))
            gone += [(kind, id_) for kind, id_ in owned if id_ is not None and id_ in found.owned]
            cx.execute(delete(table).where(table.c.preference == found.id))
            cx.execute(delete(mem_preferences).where(mem_preferences.c.id == found.id))
            drop_condition(cx, "preference", found.id)
            unindex(cx, "preference", found.id)
    return gone
