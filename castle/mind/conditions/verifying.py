"""The conditions of facts, procedures and preferences: attached, looked up, verified.

What is met makes its object out of date, through the one way in which things expire. What is unknown changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from castle.errors import NotFoundError, UsageError
from castle.mind.conditions.rules import (
    Environment,
    FileState,
    Verdict,
    baseline_of,
    evaluate,
    files_of,
    read_condition,
    to_json_value,
)
from castle.mind.environment.files import file_state
from castle.mind.environment.values import from_stored, read_environment, without_secrets
from castle.store.mind_conditions import (
    StoredCondition,
    conditions_in,
    count_without_condition,
    directory_of_wing,
    get_condition,
    latest_snapshot,
    note_result,
    put_condition,
)
from castle.store.mind_rows import resolve

if TYPE_CHECKING:
    from castle.store.palace import Palace

MAX_HASHED_AT_SAVE = 20_000_000
"""Bytes of a file that is hashed while something is saved; a larger one is first looked at by a check."""

MAX_FILES = 200
"""Files of ``file_modified`` that are looked at, of one wing."""

NOTHING = Environment({})


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of the condition of one object, and whether that made it out of date."""

    kind: str
    id: str
    verdict: Verdict
    expired: bool
    expression: Mapping[str, Any]

    def shown(self) -> dict[str, Any]:
        """Return it as answers hold it."""
        return {
            "verified": True,
            "condition_met": self.verdict.met,
            "result": self.verdict.result,
            "reason": self.verdict.reason,
            "action": "expire" if self.verdict.met else "none",
            "entry_id": self.id,
            "kind": self.kind,
            "condition": dict(self.expression),
            "expired": self.expired,
        }


def check_expression(expr: object) -> Mapping[str, Any]:
    """Return a condition in its one form; raises UsageError, one line that says where it is wrong."""
    return to_json_value(read_condition(expr))


def attach(
    palace: Palace, cx: Connection, kind: str, id_: str, expr: object, wing: str | None, now: int
) -> None:
    """Give an object its condition, and remember what its fields are like; raises UsageError.

    They are taken from the latest snapshot of the wing, files from its directory. What neither knows is
    remembered by the first check that does.
    """
    condition = read_condition(expr)
    scope = wing or ""
    known = latest_environment(cx, scope) or NOTHING
    files = files_of(condition)
    directory = directory_of_wing(cx, scope) if scope and files else None
    states = {} if directory is None else {n: file_state(directory, n, MAX_HASHED_AT_SAVE) for n in files}
    environment = Environment(known.values, states)
    put_condition(cx, kind, id_, to_json_value(condition), baseline_of(condition, environment), scope, now)


def condition_of(cx: Connection, kind: str, id_: str) -> Mapping[str, Any] | None:
    """Return the condition of an object, None where it has none."""
    found = get_condition(cx, kind, id_)
    return None if found is None else found.expression


def verify(
    palace: Palace,
    entry_id: str | None,
    environment: Mapping[str, Any] | None,
    *,
    dry_run: bool = False,
    wing: str | None = None,
    actor: str,
) -> dict[str, Any]:
    """Check the condition of one object, or every condition, and expire what is met.

    Without an environment the latest snapshot of each condition's wing is taken. ``wing`` limits the check of
    every condition. Raises UsageError where neither is there, NotFoundError for an unknown id.
    """
    given = None if environment is None else without_secrets(read_environment(environment), palace.salt)
    with palace.ledger.read() as cx:
        rows = conditions_in(cx, wing) if entry_id is None else _condition_of_one(cx, entry_id)
    known = {scope: _known(palace, scope, given, rows) for scope in {row.scope for row in rows}}
    if rows and not any(known.values()):
        raise UsageError(
            'there is no environment to compare with: give one such as {"node_version": "20"}, or collect '
            "that of the project with `castle check-env DIR`"
        )
    with palace.ledger.read() if dry_run else palace.ledger.write() as cx:
        now = palace.ledger.clock()
        # Read again: another process may have changed what they remember while files were looked at.
        found = (get_condition(cx, row.kind, row.id) for row in rows)
        done = [
            judge(cx, row, known.get(row.scope) or NOTHING, dry_run=dry_run, actor=actor, now=now)
            for row in found
            if row is not None
        ]
        if entry_id is not None:
            return done[0].shown() if done else _without_condition(cx, entry_id)
        return {
            "total_checked": len(done),
            "triggered": [item.shown() for item in done if item.verdict.met],
            "still_valid": sum(item.verdict.result == "not_met" for item in done),
            "unknown": [item.shown() for item in done if item.verdict.result == "unknown"],
            "no_condition": count_without_condition(cx),
            "dry_run": dry_run,
        }


def _condition_of_one(cx: Connection, entry_id: str) -> list[StoredCondition]:
    found = get_condition(cx, *resolve(cx, entry_id))
    return [] if found is None else [found]


def _without_condition(cx: Connection, entry_id: str) -> dict[str, Any]:
    kind, id_ = resolve(cx, entry_id)
    verdict = Verdict("unknown", "it has no condition")
    return Judged(kind, id_, verdict, False, {}).shown()


def judge(
    cx: Connection, row: StoredCondition, environment: Environment, *, dry_run: bool, actor: str, now: int
) -> Judged:
    """Evaluate a stored condition, remember the result, and expire its object where it is met.

    Nothing is written in a dry run. A condition of an earlier Castle that cannot be read any more is unknown.
    """
    try:
        condition = read_condition(row.expression)
    except UsageError as error:
        return Judged(row.kind, row.id, Verdict("unknown", str(error)), False, row.expression)
    verdict = evaluate(condition, environment, row.baseline)
    expired = False
    if not dry_run:
        baseline = baseline_of(condition, environment, row.baseline)
        note_result(cx, row.kind, row.id, verdict.result, verdict.reason, baseline, now)
        expired = verdict.met and expire_owner(cx, row.kind, row.id, verdict.reason, actor, now)
    return Judged(row.kind, row.id, verdict, expired, row.expression)


def expire_owner(cx: Connection, kind: str, id_: str, reason: str, actor: str, now: int) -> bool:
    """Let an object be out of date, with the triples linked to it; False where it was already."""
    if kind == "preference":
        from castle.store.mind_preferences import expire_preference

        return expire_preference(cx, id_, reason=reason, actor=actor, now=now)
    from castle.store.mind_state import expire

    try:
        return expire(cx, kind, id_, reason=reason, actor=actor, now=now)
    except NotFoundError:
        return False


def files_asked(rows: Iterable[StoredCondition]) -> set[str]:
    """Return the files that stored conditions are about."""
    found: set[str] = set()
    for row in rows:
        try:
            found |= files_of(read_condition(row.expression))
        except UsageError:
            continue
    return found


def files_now(palace: Palace, scope: str, files: Iterable[str]) -> dict[str, FileState]:
    """Return the state of files in the directory of a wing; none where it is not on this machine."""
    wanted = sorted(files)[:MAX_FILES]
    if not scope or not wanted:
        return {}
    with palace.ledger.read() as cx:
        directory = directory_of_wing(cx, scope)
    return {} if directory is None else {name: file_state(directory, name) for name in wanted}


def latest_environment(cx: Connection, scope: str) -> Environment | None:
    """Return the environment of the newest snapshot of a scope."""
    stored = latest_snapshot(cx, scope)
    return None if stored is None else from_stored(stored)


def _known(
    palace: Palace, scope: str, given: Environment | None, rows: Iterable[StoredCondition]
) -> Environment | None:
    """Return the environment given, else the latest snapshot of the scope, with its files as they are now."""
    with palace.ledger.read() as cx:
        known = given or latest_environment(cx, scope)
    files = files_now(palace, scope, files_asked(row for row in rows if row.scope == scope))
    return Environment(known.values if known else {}, files) if known or files else None
