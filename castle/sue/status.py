"""How a review stands: what its state says, and whether that can still be true."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any, Literal, cast

from castle.clock import parse_iso
from castle.store.reviews import MANIFEST, run_folders
from castle.sue.processes import runs
from castle.sue.runs import REPORT, STARTED, STATE, TRACE, RunError, read_json

Standing = Literal["queued", "running", "completed", "failed", "interrupted"]

QUEUED_SECONDS = 90.0
SILENT_SECONDS = 60.0
"""After what time without a sign of life a process that cannot be looked up counts as gone."""
_EACH_SECONDS = 15.0
_SECOND = 1_000_000
LISTED = 20


@dataclass(frozen=True, slots=True)
class Review:
    """A run as it stands. ``why`` says what made it fail or be interrupted, or how the dialogue ended.

    ``interrupted`` is never written anywhere: it is what a state that says otherwise comes to, because its
    worker is gone. ``report`` is the path of the report, "" while there is none.
    """

    id: str
    status: Standing
    terminal_state: str
    why: str
    claim: str
    decision: str
    lens: str
    provider: str
    model: str
    place: str
    external: bool
    drawers: tuple[str, ...]
    turns: int
    max_turns: int
    created_at: int
    updated_at: int
    directory: str
    report: str

    @property
    def settled(self) -> bool:
        """Whether nothing more will come."""
        return self.status not in ("queued", "running")


def standing(run: Path, now: int) -> Review:
    """Return how a run stands at ``now``; raises RunError for one that is damaged."""
    found = _standing(run, now)
    # A worker that ended between the look at its state and the look for it has left another state.
    return _standing(run, now) if found.status == "interrupted" else found


def _standing(run: Path, now: int) -> Review:
    manifest, state = read_json(run / MANIFEST), read_json(run / STATE)
    trace: Mapping[str, Any] = {}
    with suppress(RunError):
        trace = read_json(run / TRACE)
    try:
        created, updated = parse_iso(manifest["created_at"]), parse_iso(state["updated_at"])
        limit = manifest["max_provider_attempts"] * (manifest["timeout"] + _EACH_SECONDS) + QUEUED_SECONDS
        status = cast(Standing, state["status"])
        lost = _lost(state, now, created, updated, limit, begun=(run / STARTED).exists())
        why = lost or state.get("error") or trace.get("reason", "")
        return Review(
            id=run.name,
            status="interrupted" if lost else status,
            terminal_state=str(trace.get("terminal_state", "")),
            why=str(why),
            claim=str(trace.get("claim", "")),
            decision=manifest["decision"],
            lens=manifest["lens"],
            provider=manifest["provider"],
            model=manifest["model"],
            place=manifest["place"],
            external=manifest["external_processing"],
            drawers=tuple(source["drawer_id"] for source in manifest["sources"]),
            turns=len(trace.get("turns", ())),
            max_turns=manifest["max_turns"],
            created_at=created,
            updated_at=updated,
            directory=str(run),
            report=str(run / REPORT) if (run / REPORT).is_file() else "",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{run} is damaged: {error!r}") from error


def _lost(
    state: Mapping[str, Any], now: int, created: int, updated: int, limit: float, *, begun: bool
) -> str:
    """Say why a state that speaks of work to come cannot be true any more, "" where it can."""
    status = state["status"]
    if status not in ("queued", "running"):
        return ""
    if status == "queued":
        late = now - created > QUEUED_SECONDS * _SECOND
        what = "its worker began and wrote nothing" if begun else "no worker began"
        return f"{what} within {QUEUED_SECONDS:.0f} s" if late else ""
    alive = None
    if state.get("host") == gethostname():
        alive = runs(int(state["pid"]), str(state.get("began", "")))
    if alive is False:
        return f"its worker, process {state['pid']}, has ended without finishing"
    if alive is None and now - updated > SILENT_SECONDS * _SECOND:
        return f"its worker has given no sign of life for {SILENT_SECONDS:.0f} s"
    if now - created > limit * _SECOND:
        return "it has taken longer than all its attempts together may"
    return ""


def last(root: Path, now: int) -> list[Review]:
    """Return how the last 20 runs stand, the latest first; damaged ones are left out."""
    found = []
    for run in run_folders(root):
        with suppress(RunError):
            found.append(standing(run, now))
    return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)[:LISTED]
