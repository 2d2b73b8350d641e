"""Consolidation: what is kept near, what fades, what is put away, and what recurs.

A cycle scores every episode by stored numbers alone. One that scores below the threshold of the palace is a
candidate: dim after its first such cycle, cold after the third in a row. A cycle counts for that only where
something new was filed since the last one, and five minutes have passed; one that recovers begins anew.
Pinned episodes never fade, and nothing is deleted. Then new episodes and their families, at most 5,000, are
searched for patterns. A cycle over what the last one left as it is changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select

from castle.clock import to_iso
from castle.errors import CastleError, ModelError, PalaceBusyError, PalaceError, UsageError
from castle.llm.base import Provider
from castle.llm.budget import Purpose, for_purpose
from castle.mind.consolidation import calibration, feelings, pattern_search, patterns
from castle.mind.consolidation.clusters import available, families, others
from castle.mind.consolidation.repetition import keyword_repetitions
from castle.mind.consolidation.scoring import PROFILES, ProfileName
from castle.mind.consolidation.weighing import COLD, Weighed, counted, fingerprint, to_write, weigh
from castle.mind.preferences import learning
from castle.store.mind_cycles import (
    Columns,
    Cycle,
    Rated,
    begin_cycle,
    columns,
    count_cycles,
    end_cycle,
    last_cycle,
    last_end,
    latest_cycle,
    note_progress,
    put_ratings,
    stopped_cycle,
    total,
)
from castle.store.mind_rows import lease, new_holder, release
from castle.store.mind_tables import mem_episodes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castle.store.palace import Palace

__all__ = ["consolidate", "should_run", "status"]

JOB = "consolidation"
LEASE = "consolidate"
LEASE_SECONDS = 600.0

LEAST_EPISODES = 10
PAUSE_SECONDS = 300.0
GROWTH = 0.2
BATCH = 2_000
LISTED = 100
NOVELTY_SECONDS = 60.0
PREFERENCE_EPISODES = 100


def should_run(palace: Palace, wing: str | None = None) -> bool:
    """Whether a cycle is due: 10 episodes at least, 300 s since the last one, 20 % more than then.

    Where the last one left new episodes to the next, that is due as soon as the time has passed.
    """
    now = palace.ledger.clock()
    with palace.ledger.read() as cx:
        count, last = total(cx, wing), last_cycle(cx, JOB, wing)
    if count < LEAST_EPISODES:
        return False
    if last is None:
        return True
    if last.finished_at is not None and now - last.finished_at < PAUSE_SECONDS * 1e6:
        return False
    return bool(last.result.get("waiting")) or last.episodes == 0 or count >= last.episodes * (1 + GROWTH)


def status(cx: Connection) -> dict[str, Any]:
    """Return how many cycles ran, when the last one ended and what it told, and what is dim and cold."""
    last, ended = last_cycle(cx, JOB), last_end(cx, JOB)
    rows = cx.execute(select(mem_episodes.c.state, func.count()).group_by(mem_episodes.c.state))
    states = {str(state): int(count) for state, count in rows}
    told = {} if last is None else {key: last.result.get(key) for key in _TOLD}
    return {
        "cycles_run": count_cycles(cx, JOB),
        "last_cycle_at": None if ended is None else to_iso(ended),
        "cold_storage_count": states.get("cold", 0),
        "dim_count": states.get("dim", 0),
        **told,
    }


def consolidate(
    palace: Palace,
    *,
    wing: str | None = None,
    dry_run: bool = False,
    force: bool = False,
    llm: Provider | None = None,
    actor: str,
    profile: ProfileName = "default",
) -> dict[str, Any]:
    """Run one cycle over a wing, or over the palace, and return what it came to.

    ``dry_run`` changes nothing and lists what would be. ``force`` runs although the last cycle is less than
    five minutes ago; such a cycle does not count against an episode. ``llm`` reviews patterns, within its
    budget. Raises UsageError for an unknown profile, PalaceError where the palace cannot be written.
    """
    if profile not in PROFILES:
        raise UsageError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
    if not dry_run and (why := palace.ledger.unwritable()):
        raise PalaceError(f"{why}: --dry-run shows what a cycle would do")
    run = _Run(palace, wing, dry_run, llm, actor, profile)
    with palace.ledger.read() as cx:
        last = last_cycle(cx, JOB, wing)
    since = None if last is None or last.finished_at is None else (run.now - last.finished_at) / 1e6
    if since is not None and since < PAUSE_SECONDS and not (force or dry_run):
        return run.told(note=f"the last cycle ended {since:.0f} s ago; one runs every {PAUSE_SECONDS:.0f} s")
    return run.go(last)


class _Run:
    """One cycle on its way."""

    def __init__(
        self,
        palace: Palace,
        wing: str | None,
        dry_run: bool,
        llm: Provider | None,
        actor: str,
        profile: ProfileName,
    ) -> None:
        self.palace = palace
        self.wing = wing
        self.dry_run = dry_run
        self.llm = None if dry_run else llm
        self.actor = actor
        self.profile: ProfileName = profile
        self.now = palace.ledger.clock()
        self.holder = new_holder()
        self.notes: list[str] = []
        self.counted_to, self.counted_at = -1, 0

    def go(self, last: Cycle | None) -> dict[str, Any]:
        """Run the cycle, unless there is nothing to do or another process is at it."""
        if not self.dry_run:
            self._prepare()
        with self.palace.ledger.read() as cx:
            found = columns(cx, self.wing)
            # Cycles of a wing and of the palace count against the same episodes: one of them at a time.
            latest = latest_cycle(cx, JOB)
        if latest is not None:
            self.counted_to = int(latest.result.get("counted_to", -1))
            self.counted_at = int(latest.result.get("counted_at", 0))
        if not len(found):
            where = f" in wing {self.wing}" if self.wing else ""
            return self.told(note=f"there are no episodes yet{where}")
        if last is not None and not self._changed(found, last):
            return self.told(len(found), last, note="nothing has changed since the last cycle")
        if self.dry_run:
            return self._cycle(found, last, None)
        with self.palace.ledger.write() as cx:
            if not lease(cx, LEASE, self.holder, LEASE_SECONDS, self.now):
                return self.told(note="another process is consolidating")
        try:
            return self._leased(found, last)
        finally:
            with self.palace.ledger.write() as cx:
                release(cx, LEASE, self.holder)

    def _leased(self, found: Columns, last: Cycle | None) -> dict[str, Any]:
        with self.palace.ledger.write() as cx:
            again = last_cycle(cx, JOB, self.wing)
            if (again and again.rid) != (last and last.rid):
                return self.told(note="another process has just consolidated")
            stopped = stopped_cycle(cx, JOB, self.wing)
            self.rid = begin_cycle(cx, JOB, self.wing, len(found), self.now)
        return self._cycle(found, last, stopped)

    def _prepare(self) -> None:
        """Bring stored vectors and novelty up to date, as far as no model has to be waited for."""
        from castle.novelty.scoring import update
        from castle.store.catchup import behind, catch_up_vectors

        palace = self.palace
        if palace.unready:
            self.notes.append(f"what has no vector yet is judged without one: {palace.unready}")
        try:
            if not palace.unready and behind(palace, palace.vectors):
                catch_up_vectors(palace)
            update(palace, deadline=time.monotonic() + NOVELTY_SECONDS)
        except (ModelError, PalaceBusyError) as error:
            self.notes.append(f"what has no vector yet is judged without one: {error}")

    def _changed(self, found: Columns, last: Cycle) -> bool:
        told = last.result
        return bool(told.get("waiting")) or told.get("fingerprint") != self._print(found)

    def _print(self, found: Columns) -> str:
        return fingerprint(found, self.profile, self.palace.identity.identity, str(available()))

    def _cycle(self, found: Columns, last: Cycle | None, stopped: Cycle | None) -> dict[str, Any]:
        started = time.perf_counter()
        found, judged, notes = feelings.judge(
            self.palace, found, self.now, llm=self._for("emotion"), write=not self.dry_run
        )
        self.notes += notes
        least = self._link(found)
        labels = families(found.rid, found.nearest, found.cosine, least)
        weighed = self._weigh(found, stopped, labels)
        rated = to_write(found, weighed)
        if not self.dry_run:
            self._write(rated)
        seen = pattern_search.Seen.of(last.result if last is not None else {})
        usable = (weighed.state != COLD) & (found.state != COLD)
        sought = self._patterns(found, usable, labels, least, seen)
        after = replace(found, low=weighed.low, state=weighed.state)
        told: dict[str, Any] = {
            **self.told(len(found)),
            **counted(found, weighed, rated),
            "patterns_detected": sum(one.decision == "new" for one in sought.proposals),
            "patterns_reinforced": sum(one.decision == "again" for one in sought.proposals),
            "patterns": [_shown(one) for one in sought.proposals][:LISTED],
            "link_cosine": round(least, 4),
            "emotions_judged": judged,
            "waiting": sought.seen.waiting,
        }
        if self.dry_run:
            if told["without_vector"]:
                blind = f"{told['without_vector']} episodes are judged without a vector"
                self.notes.append(f"{blind}, which the cycle itself makes: castle repair --backfill-novelty")
            told["notes"] = list(dict.fromkeys(self.notes))
            told["would_archive"] = [one.id for one in rated if one.state == "cold"][:LISTED]
            told["would_dim"] = [one.id for one in rated if one.state == "dim"][:LISTED]
            return {**told, "seconds": round(time.perf_counter() - started, 3)}
        told["preferences"] = self._preferences()
        told["seconds"] = round(time.perf_counter() - started, 3)
        told["notes"] = list(dict.fromkeys(self.notes))
        kept = {
            "fingerprint": self._print(after),
            "counted_to": int(found.rid[-1]) if weighed.counts else self.counted_to,
            "counted_at": self.now if weighed.counts else self.counted_at,
            **sought.seen.kept(),
        }
        ended = self.palace.ledger.clock()
        with self.palace.ledger.write() as cx:
            told["cycle_number"] = count_cycles(cx, JOB) + 1
            told["completed_at"] = to_iso(ended)
            end_cycle(cx, self.rid, {**told, **kept}, ended)
        # A palace that is only told things is counted by nobody else, and then searched by the wrong indexes.
        with suppress(PalaceBusyError):
            self.palace.ledger.analyze()
        return told

    def _link(self, found: Columns) -> float:
        """Return the cosine from which two episodes say much the same, measuring the palace if need be."""
        identity = self.palace.identity.identity
        with self.palace.ledger.read() as cx:
            known = calibration.known(cx, identity)
            outgrown = calibration.outgrown(known, found)
            fresh = calibration.measure(self.palace, cx, found) if outgrown else None
            if fresh is None or self.dry_run:
                return calibration.link(cx, identity, fresh or known)
        with self.palace.ledger.write() as cx:
            calibration.keep(cx, identity, fresh)
            return calibration.link(cx, identity, fresh)

    def _weigh(
        self,
        found: Columns,
        stopped: Cycle | None,
        labels: NDArray[np.int64],
    ) -> Weighed:
        paused = self.now - self.counted_at >= PAUSE_SECONDS * 1e6
        counts = paused and int(found.rid[-1]) > self.counted_to
        similar = self._said_alike(found) if self.profile == "compat" else others(labels)
        done = -1 if stopped is None else int(stopped.result.get("progress", -1))
        return weigh(found, similar, self.now, profile=self.profile, counts=counts, counted_to=done)

    def _said_alike(self, found: Columns) -> NDArray[np.float64]:
        with self.palace.ledger.read() as cx:
            return keyword_repetitions(cx, found.ids)

    def _write(self, rated: Sequence[Rated]) -> None:
        for start in range(0, len(rated), BATCH):
            part = rated[start : start + BATCH]
            with self.palace.ledger.write() as cx:
                if not lease(cx, LEASE, self.holder, LEASE_SECONDS, self.palace.ledger.clock()):
                    raise CastleError("another process has taken over the consolidation: run it again")
                put_ratings(cx, part, actor=self.actor, now=self.now)
                note_progress(cx, self.rid, {"progress": part[-1].rid})

    def _patterns(
        self,
        found: Columns,
        usable: NDArray[np.bool_],
        labels: NDArray[np.int64],
        least: float,
        seen: pattern_search.Seen,
    ) -> pattern_search.Sought:
        sought = pattern_search.search(
            self.palace, found, usable, labels, least, seen, compat=self.profile == "compat"
        )
        self.notes += sought.notes
        if self.dry_run:
            return sought
        proposals = list(sought.proposals)
        reviewer = self._for("pattern")
        if reviewer is not None:
            proposals, notes = patterns.review(proposals, sought.texts, reviewer)
            self.notes += notes
        with self.palace.ledger.write() as cx:
            written = patterns.write(cx, proposals, actor=self.actor, now=self.now)
        return replace(sought, proposals=tuple(written))

    def _preferences(self) -> dict[str, Any]:
        """Let what was said of preferences be read, which is part of every cycle."""
        try:
            told = learning.extract(self.palace, llm=self.llm, limit=PREFERENCE_EPISODES, actor=self.actor)
        except CastleError as error:
            self.notes.append(f"preferences were not read: {error}")
            return {}
        return dict(told)

    def _for(self, purpose: Purpose) -> Provider | None:
        """Return the model with the budget of a purpose, None where it cannot be asked."""
        if self.llm is None:
            return None
        provider = for_purpose(self.llm, self.palace.ledger, purpose)
        reason = provider.available()
        if reason:
            self.notes.append(reason)
            return None
        return provider

    def told(self, scored: int = 0, last: Cycle | None = None, note: str = "") -> dict[str, Any]:
        """Return what a cycle tells before it has done anything."""
        found = {} if last is None else {key: last.result[key] for key in _TOLD if key in last.result}
        notes = [*self.notes, note] if note else list(self.notes)
        return {
            "cycle_number": 0,
            "total_scored": scored,
            "forget_candidates": 0,
            "archived": 0,
            "dimmed": 0,
            "recovered": 0,
            "patterns_detected": 0,
            "patterns_reinforced": 0,
            "forget_threshold": 0.0,
            "completed_at": None,
            **found,
            "ran": not note,
            "dry_run": self.dry_run,
            "profile": self.profile,
            "notes": notes,
        }


_TOLD = ("cycle_number", "forget_candidates", "forget_threshold", "completed_at", "waiting")


def _shown(one: patterns.Proposal) -> dict[str, Any]:
    return {
        "fact": one.fact or None,
        "statement": one.statement,
        "wing": one.wing,
        "episodes": list(one.members),
        "confidence": one.confidence,
        "decision": one.decision,
        "reason": one.reason,
        "reviewed_by": one.method,
    }
