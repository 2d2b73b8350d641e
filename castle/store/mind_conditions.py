"""Rows of conditions and of snapshots of environments; always inside the caller's transaction.

A scope is the name of a wing, "" for what belongs to none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from castle.store.ledger import to_json
from castle.store.mind_tables import (
    mem_conditions,
    mem_env_snapshots,
    mem_facts,
    mem_preferences,
    mem_procedures,
)
from castle.store.schema import project_aliases, sources

KEPT_SNAPSHOTS = 100
"""Snapshots that are kept for each scope."""

OVER = ("rejected", "expired")
"""States of a preference that no condition can make any more out of date."""


@dataclass(frozen=True, slots=True)
class StoredCondition:
    """The condition of a fact, procedure or preference, with what it remembers and what came of it last.

    ``last_result`` is met, not_met or unknown, "" before the first check.
    """

    kind: str
    id: str
    expression: Mapping[str, Any]
    baseline: Mapping[str, Any]
    scope: str
    last_result: str
    last_reason: str
    last_checked_at: int | None


def put_condition(
    cx: Connection,
    kind: str,
    id_: str,
    expression: Mapping[str, Any],
    baseline: Mapping[str, Any],
    scope: str,
    now: int,
) -> None:
    """Store the one condition of an object in the place of an earlier one."""
    values = {
        "expression_json": to_json(expression),
        "baseline_json": to_json(baseline),
        "scope": scope,
        "last_result": "",
        "last_reason": "",
        "last_checked_at": None,
        "created_at": now,
    }
    statement = upsert(mem_conditions).values(owner_kind=kind, owner_id=id_, **values)
    cx.execute(statement.on_conflict_do_update(index_elements=["owner_kind", "owner_id"], set_=values))


def drop_condition(cx: Connection, kind: str, id_: str) -> None:
    """Remove the condition of an object."""
    cx.execute(delete(mem_conditions).where(_owner(kind, id_)))


def get_condition(cx: Connection, kind: str, id_: str) -> StoredCondition | None:
    """Return the condition of an object."""
    row = cx.execute(select(mem_conditions).where(_owner(kind, id_))).first()
    return None if row is None else _stored(row)


def conditions_in(cx: Connection, scope: str | None) -> list[StoredCondition]:
    """Return the conditions of a scope (None: of all) whose objects are not out of date already."""
    query = select(mem_conditions).order_by(mem_conditions.c.owner_kind, mem_conditions.c.owner_id)
    if scope is not None:
        query = query.where(mem_conditions.c.scope == scope)
    found = [_stored(row) for row in cx.execute(query)]
    standing = {kind: _standing(cx, kind) for kind in {item.kind for item in found}}
    return [item for item in found if item.id in standing[item.kind]]


def _standing(cx: Connection, kind: str) -> set[str]:
    queries = {
        "fact": select(mem_facts.c.id).where(mem_facts.c.invalidated_at.is_(None)),
        "procedure": select(mem_procedures.c.id).where(mem_procedures.c.invalidated_at.is_(None)),
        "preference": select(mem_preferences.c.id).where(mem_preferences.c.status.not_in(OVER)),
    }
    return {id_ for (id_,) in cx.execute(queries[kind])} if kind in queries else set()


def note_result(
    cx: Connection, kind: str, id_: str, result: str, reason: str, baseline: Mapping[str, Any], now: int
) -> None:
    """Remember what came of a condition, and what it compares with from now on."""
    values = {
        "last_result": result,
        "last_reason": reason,
        "last_checked_at": now,
        "baseline_json": to_json(baseline),
    }
    cx.execute(update(mem_conditions).where(_owner(kind, id_)).values(**values))


def count_without_condition(cx: Connection) -> int:
    """Return how many facts that still hold have no condition."""
    with_one = select(mem_conditions.c.owner_id).where(mem_conditions.c.owner_kind == "fact")
    query = (
        select(func.count())
        .select_from(mem_facts)
        .where(mem_facts.c.invalidated_at.is_(None), mem_facts.c.id.not_in(with_one))
    )
    return cx.execute(query).scalar_one()


def latest_snapshot(cx: Connection, scope: str) -> str | None:
    """Return the newest snapshot of a scope as it was stored."""
    query = select(mem_env_snapshots.c.snapshot_json).where(mem_env_snapshots.c.scope == scope)
    found: str | None = cx.execute(query.order_by(mem_env_snapshots.c.rid.desc()).limit(1)).scalar()
    return found


def add_snapshot(cx: Connection, scope: str, snapshot: str, now: int) -> bool:
    """Store a snapshot unless it is the same as the newest one; the oldest of too many are let go."""
    digest = hashlib.sha256(snapshot.encode("utf-8", "surrogatepass")).hexdigest()
    of_scope = mem_env_snapshots.c.scope == scope
    newest = mem_env_snapshots.c.rid.desc()
    query = select(mem_env_snapshots.c.sha256).where(of_scope).order_by(newest).limit(1)
    if cx.execute(query).scalar() == digest:
        return False
    values = {"scope": scope, "snapshot_json": snapshot, "sha256": digest, "captured_at": now}
    cx.execute(insert(mem_env_snapshots).values(**values))
    kept = select(mem_env_snapshots.c.rid).where(of_scope).order_by(newest).limit(KEPT_SNAPSHOTS)
    cx.execute(delete(mem_env_snapshots).where(of_scope, mem_env_snapshots.c.rid.not_in(kept)))
    return True


def directory_of_wing(cx: Connection, wing: str) -> Path | None:
    """Return the directory on this machine that a wing was filed from, the one that was added last."""
    query = (
        select(project_aliases.c.value)
        .join(sources, sources.c.project == project_aliases.c.project)
        .where(sources.c.wing == wing, project_aliases.c.kind == "path")
        .group_by(project_aliases.c.value)
        .order_by(func.max(sources.c.id).desc())
    )
    paths = (Path(value) for (value,) in cx.execute(query))
    return next((path for path in paths if path.is_absolute() and path.is_dir()), None)


def _owner(kind: str, id_: str) -> Any:
    return (mem_conditions.c.owner_kind == kind) & (mem_conditions.c.owner_id == id_)


def _stored(row: Row[Any]) -> StoredCondition:
    return StoredCondition(
        row.owner_kind,
        row.owner_id,
        json.loads(row.expression_json),
        json.loads(row.baseline_json),
        row.scope,
        row.last_result,
        row.last_reason,
        row.last_checked_at,
    )
