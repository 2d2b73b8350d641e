"""Procedures: ways of doing something, with the outcomes that they had."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from castle.errors import NotFoundError, UsageError
from castle.store.ledger import to_json
from castle.store.mind_facts import clamp
from castle.store.mind_index import index
from castle.store.mind_rows import cite, new_id, norm_hash, note_change, said_again, standing
from castle.store.mind_tables import mem_procedure_outcomes, mem_procedures
from castle.store.mind_values import DERIVED, ORIGINS, Origin, Procedure, Source

INITIAL_WEIGHT = 0.5
SUCCESS_FACTOR, FAILURE_FACTOR = 1.05, 0.85
FLOOR, CEILING = 0.1, 1.0
DECAYING = 0.25
"""A weight below which a procedure is looked at again."""


def add_procedure(
    cx: Connection,
    content: str,
    *,
    origin: Origin,
    actor: str,
    now: int,
    trigger: str = "",
    task_type: str = "",
    weight: float = INITIAL_WEIGHT,
    variant_of: str | None = None,
    preference: str | None = None,
    drawer: str | None = None,
    wing: str | None = None,
    sources: Iterable[Source] = (),
    tags: Sequence[str] = (),
    metadata: Mapping[str, object] | None = None,
) -> Procedure:
    """Learn a way of doing something; the same words for the same trigger again are the one there is.

    Raises NotFoundError when it is to be a variant of one that there is not.
    """
    if origin not in ORIGINS:
        raise UsageError(f"origin {origin!r} is none of {', '.join(ORIGINS)}")
    if not content.strip():
        raise UsageError("the procedure is empty")
    given = tuple(sources)
    digest = norm_hash(f"{trigger}\n{content}")
    known = standing(cx, "procedure", digest, wing)
    if known is not None:
        cite(cx, "procedure", known, given, now)
        said_again(cx, "procedure", get_procedure(cx, known), tags, metadata, actor=actor, now=now)
        return get_procedure(cx, known)
    if variant_of is not None:
        variant_of = root_of(cx, variant_of)
    id_ = new_id("procedure")
    weight = clamp(weight, FLOOR, CEILING)
    cx.execute(
        insert(mem_procedures).values(
            id=id_,
            content=content,
            trigger=trigger,
            task_type=task_type,
            weight=weight,
            successes=0,
            failures=0,
            variant_of=variant_of,
            preference=preference,
            origin=origin,
            unsupported=origin in DERIVED and not given,
            drawer=drawer,
            wing=wing,
            norm_hash=digest,
            state="active",
            pinned=False,
            reason="",
            access_count=0,
            tags_json=to_json(list(tags)),
            metadata_json=to_json(dict(metadata or {})),
            created_at=now,
            updated_at=now,
        )
    )
    cite(cx, "procedure", id_, given, now)
    index(cx, "procedure", id_, f"{trigger}\n{content}")
    note_change(cx, "procedure", id_, "weight", "", weight, reason=f"origin {origin}", actor=actor, now=now)
    return get_procedure(cx, id_)


def get_procedure(cx: Connection, id_: str) -> Procedure:
    """Return a procedure; raises NotFoundError."""
    row = cx.execute(select(mem_procedures).where(mem_procedures.c.id == id_)).first()
    if row is None:
        raise NotFoundError(f"the mind holds no procedure {id_}")
    return to_procedure(row)


def procedures(
    cx: Connection,
    *,
    wing: str | None = None,
    task_type: str | None = None,
    include_expired: bool = False,
    include_cold: bool = False,
    ids: Sequence[str] | None = None,
    limit: int = 1_000,
) -> list[Procedure]:
    """Return procedures, the heaviest first; those of a wing and those that hold everywhere."""
    query = select(mem_procedures)
    if wing is not None:
        query = query.where((mem_procedures.c.wing == wing) | mem_procedures.c.wing.is_(None))
    if task_type is not None:
        query = query.where(mem_procedures.c.task_type == task_type)
    if not include_expired:
        query = query.where(mem_procedures.c.invalidated_at.is_(None))
    if not include_cold:
        query = query.where(mem_procedures.c.state != "cold")
    if ids is not None:
        query = query.where(mem_procedures.c.id.in_(ids))
    ordered = query.order_by(mem_procedures.c.weight.desc(), mem_procedures.c.id).limit(limit)
    return [to_procedure(row) for row in cx.execute(ordered)]


def variants(cx: Connection, id_: str) -> list[Procedure]:
    """Return a procedure and everything that is a variant of the same one, itself included."""
    root = root_of(cx, id_)
    query = select(mem_procedures).where(
        (mem_procedures.c.id == root) | (mem_procedures.c.variant_of == root)
    )
    return [to_procedure(row) for row in cx.execute(query.order_by(mem_procedures.c.created_at))]


def root_of(cx: Connection, id_: str) -> str:
    """Return the procedure that another one is a variant of, itself where it is none."""
    found = get_procedure(cx, id_)
    return found.variant_of or found.id


def change_weight(
    cx: Connection,
    id_: str,
    weight: float,
    *,
    reason: str,
    actor: str,
    now: int,
    evidence: Sequence[str] = (),
) -> float:
    """Set the weight of a procedure, kept in [0.1, 1], and return it."""
    before = get_procedure(cx, id_).weight
    wanted = clamp(weight, FLOOR, CEILING)
    if wanted != before:
        values = {"weight": wanted, "updated_at": now}
        cx.execute(update(mem_procedures).where(mem_procedures.c.id == id_).values(**values))
        note_change(
            cx,
            "procedure",
            id_,
            "weight",
            before,
            wanted,
            reason=reason,
            actor=actor,
            now=now,
            evidence=evidence,
        )
    return wanted


def record_outcome(
    cx: Connection, id_: str, success: bool, *, actor: str, now: int, session: str = "", note: str = ""
) -> Procedure:
    """Note how a procedure went: its weight is multiplied by 1.05 (at most 1) or by 0.85 (at least 0.1)."""
    found = get_procedure(cx, id_)
    cx.execute(
        insert(mem_procedure_outcomes).values(
            procedure=id_, session=session, success=success, note=note, at=now
        )
    )
    counts = {"successes": found.successes + success, "failures": found.failures + (not success)}
    times = {"last_triggered_at": now, "last_outcome_at": now, "updated_at": now}
    cx.execute(update(mem_procedures).where(mem_procedures.c.id == id_).values(**counts, **times))
    factor = SUCCESS_FACTOR if success else FAILURE_FACTOR
    reason = "it worked" if success else "it failed"
    change_weight(cx, id_, found.weight * factor, reason=reason, actor=actor, now=now)
    return get_procedure(cx, id_)


def note_triggered(cx: Connection, ids: Sequence[str], now: int) -> None:
    """Note that a situation called procedures to mind."""
    if ids:
        named = mem_procedures.c.id.in_(ids)
        cx.execute(update(mem_procedures).where(named).values(last_triggered_at=now))


def outcomes(cx: Connection, id_: str) -> list[tuple[int, bool, str]]:
    """Return (time, success, note) of every outcome, the oldest first."""
    query = select(mem_procedure_outcomes).where(mem_procedure_outcomes.c.procedure == id_)
    return [(r.at, r.success, r.note) for r in cx.execute(query.order_by(mem_procedure_outcomes.c.rid))]


def to_procedure(row: Any) -> Procedure:
    """Return a row as a value."""
    return Procedure(
        row.id,
        row.content,
        row.trigger,
        row.task_type,
        row.weight,
        row.successes,
        row.failures,
        row.variant_of,
        row.preference,
        row.origin,
        row.unsupported,
        row.drawer,
        row.wing,
        row.state,
        row.pinned,
        row.invalidated_at,
        row.reason,
        row.last_triggered_at,
        row.last_outcome_at,
        row.access_count,
        row.last_access_at,
        tuple(json.loads(row.tags_json)),
        json.loads(row.metadata_json),
        row.created_at,
        row.updated_at,
    )


def set_counts(cx: Connection, id_: str, successes: int, failures: int) -> None:
    """Take over how often a procedure worked and failed before it was imported."""
    values = {"successes": max(successes, 0), "failures": max(failures, 0)}
    cx.execute(update(mem_procedures).where(mem_procedures.c.id == id_).values(**values))
