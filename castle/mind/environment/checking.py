"""Checking a project's environment: what has changed in it, and what is out of date because of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.mind.conditions.rules import Environment
from castle.mind.conditions.verifying import files_asked, files_now, judge, latest_environment
from castle.mind.environment.collect import OWN_FIELDS, collect_environment
from castle.mind.environment.values import (
    changes,
    merged,
    read_environment,
    to_stored,
    without_secrets,
)
from castle.store.mind_conditions import add_snapshot, conditions_in

if TYPE_CHECKING:
    from castle.store.palace import Palace

__all__ = ["check_environment", "check_project", "collect", "collect_environment", "read_environment"]


def collect(path: Path) -> dict[str, Any]:
    """Return the fields of a project's environment; raises UsageError for what is not a directory."""
    return dict(collect_environment(path).values)


def check_environment(
    palace: Palace,
    environment: Mapping[str, Any] | Environment,
    *,
    wing: str | None = None,
    merge: bool = False,
    dry_run: bool = False,
    actor: str,
) -> dict[str, Any]:
    """Compare an environment with the last one of a wing, verify the wing's conditions, expire what is met.

    The snapshot, the results and what they expire are one transaction. ``merge``: what is given is a part,
    and fields that it leaves out are as they were. ``wing`` None stands for what belongs to no wing. Files
    that conditions name are looked at in the directory of the wing. A dry run says what would be done.
    Raises UsageError for what is no environment.
    """
    scope = wing or ""
    given = environment if isinstance(environment, Environment) else read_environment(environment)
    given = without_secrets(given, palace.salt)
    if not given.files:
        with palace.ledger.read() as cx:
            asked = files_asked(conditions_in(cx, scope))
        given = replace(given, files=files_now(palace, scope, asked))
    with palace.ledger.read() if dry_run else palace.ledger.write() as cx:
        now = palace.ledger.clock()
        before = latest_environment(cx, scope)
        environment = merged(before, given) if merge else given
        differs = changes(before, environment)
        done = [
            judge(cx, row, environment, dry_run=dry_run, actor=actor, now=now)
            for row in conditions_in(cx, scope)
        ]
        if not dry_run and differs.any:
            add_snapshot(cx, scope, to_stored(environment), now)
    answer: dict[str, Any] = {
        "triggered": differs.any,
        "changes_detected": differs.shown(),
        "entries_checked": len(done),
        "triggered_entries": [item.shown() for item in done if item.verdict.met],
        "unknown_entries": [item.shown() for item in done if item.verdict.result == "unknown"],
        "scope": scope,
        "dry_run": dry_run,
    }
    if not differs.any:
        answer["note"] = "nothing has changed since the last snapshot"
    return answer


def check_project(
    palace: Palace, project: Path, *, wing: str | None = None, dry_run: bool = False, actor: str
) -> tuple[Environment, dict[str, Any]]:
    """Collect a project's environment and check it; what others reported of the wing stays as it was."""
    with palace.ledger.read() as cx:
        files = files_asked(conditions_in(cx, wing or ""))
        before = latest_environment(cx, wing or "")
    found = without_secrets(collect_environment(project, files=files), palace.salt)
    reported = {} if before is None else {k: v for k, v in before.values.items() if k not in OWN_FIELDS}
    whole = replace(found, values={**reported, **found.values})
    return found, check_environment(palace, whole, wing=wing, dry_run=dry_run, actor=actor)
