"""Cycles of the mind: which ran, and what consolidation reads and writes of all episodes at once.

Episodes are read as columns, without their texts, and written in batches, so that a cycle over a large palace
costs seconds. A batch is one transaction: its scores, its states and their history stand or fall together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from castle.store.ledger import batches, to_json
from castle.store.mind_edges import SOURCE_WEIGHT
from castle.store.mind_episodes import is_episode
from castle.store.mind_state import NEW_EPISODE
from castle.store.mind_tables import (
    mem_cycles,
    mem_edges,
    mem_episodes,
    mem_history,
    mem_recalls,
    mem_sources,
)
from castle.store.novelty_tables import novelty
from castle.store.reading import drawers_by_id, served
from castle.store.schema import drawers
from castle.store.use_tables import pins

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STATES = ("active", "dim", "cold")
_PAGE = 20_000

_FROM = (
    drawers.outerjoin(mem_episodes, mem_episodes.c.drawer == drawers.c.rid)
    .outerjoin(pins, pins.c.drawer == drawers.c.rid)
    .outerjoin(novelty, novelty.c.drawer == drawers.c.rid)
)
_COLUMNS = (
    drawers.c.rid,
    drawers.c.id,
    drawers.c.wing,
    drawers.c.authored_at,
    mem_episodes.c.valence,
    mem_episodes.c.valence_source,
    mem_episodes.c.outcome_valence,
    mem_episodes.c.score,
    mem_episodes.c.low_cycles,
    mem_episodes.c.state,
    mem_episodes.c.last_access_at,
    pins.c.pinned_at,
    novelty.c.score.label("novelty"),
    novelty.c.nearest,
)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One run of a job; ``finished_at`` is None for one that was stopped. ``result`` is what it told."""

    rid: int
    job: str
    wing: str | None
    episodes: int
    result: Mapping[str, Any]
    started_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class Columns:
    """All episodes that have not expired, in the order of filing; every field has one entry for each.

    ``touched`` is when an episode was last recalled, or else authored (microseconds); ``state`` an index into
    STATES, ``cosine`` that to the nearest earlier drawer and ``nearest`` its rid, NaN and 0 where no vector
    is known; ``outcome`` and ``score`` are NaN where there is none. ``felt`` is false while nobody has judged
    the valence.
    """

    ids: tuple[str, ...]
    wings: tuple[str, ...]
    rid: NDArray[np.int64]
    authored: NDArray[np.int64]
    touched: NDArray[np.int64]
    valence: NDArray[np.float64]
    felt: NDArray[np.bool_]
    outcome: NDArray[np.float64]
    score: NDArray[np.float64]
    low: NDArray[np.int64]
    state: NDArray[np.int64]
    pinned: NDArray[np.bool_]
    cosine: NDArray[np.float64]
    nearest: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Rated:
    """What a cycle writes of one episode: its score, how often in a row it was low, and its state."""

    rid: int
    id: str
    score: float
    low: int
    before: str
    state: str
    reason: str = ""


def columns(cx: Connection, wing: str | None = None) -> Columns:
    """Return all episodes of a wing, or of the palace, as columns."""
    import numpy as np

    rows: list[Any] = []
    after = 0
    while True:
        query = select(*_COLUMNS).select_from(_FROM).where(is_episode(), drawers.c.rid > after)
        query = query.where(mem_episodes.c.invalidated_at.is_(None))
        if wing is not None:
            query = query.where(drawers.c.wing == wing)
        page = cx.execute(query.order_by(drawers.c.rid).limit(_PAGE)).all()
        rows += page
        if len(page) < _PAGE:
            break
        after = page[-1].rid
    nan = float("nan")
    return Columns(
        ids=tuple(row.id for row in rows),
        wings=tuple(row.wing for row in rows),
        rid=np.array([row.rid for row in rows], dtype=np.int64),
        authored=np.array([row.authored_at for row in rows], dtype=np.int64),
        touched=np.array([max(row.authored_at, row.last_access_at or 0) for row in rows], dtype=np.int64),
        valence=np.array([row.valence or 0.0 for row in rows], dtype=np.float64),
        felt=np.array([bool(row.valence_source) for row in rows], dtype=np.bool_),
        outcome=np.array([nan if row.outcome_valence is None else row.outcome_valence for row in rows]),
        score=np.array([nan if row.score is None else row.score for row in rows], dtype=np.float64),
        low=np.array([row.low_cycles or 0 for row in rows], dtype=np.int64),
        state=np.array([STATES.index(row.state or "active") for row in rows], dtype=np.int64),
        pinned=np.array([row.pinned_at is not None for row in rows], dtype=np.bool_),
        cosine=np.array([nan if row.novelty is None else 1.0 - row.novelty for row in rows]),
        nearest=np.array([row.nearest or 0 for row in rows], dtype=np.int64),
    )


def total(cx: Connection, wing: str | None = None) -> int:
    """Return how many episodes have not expired, whatever their state."""
    query = select(func.count()).select_from(_FROM).where(is_episode())
    if wing is not None:
        query = query.where(drawers.c.wing == wing)
    return int(cx.execute(query.where(mem_episodes.c.invalidated_at.is_(None))).scalar_one())


def scores_of(cx: Connection) -> list[tuple[float, str]]:
    """Return the score of the last cycle and the state of every episode that has one."""
    query = select(mem_episodes.c.score, mem_episodes.c.state).where(mem_episodes.c.score.is_not(None))
    return [(score, state) for score, state in cx.execute(query)]


def strongest_edges(cx: Connection, limit: int) -> list[tuple[tuple[str, str], tuple[str, str], str, float]]:
    """Return (source, target, relation, weight) of the strongest associations, then of what rests on what."""
    weight = func.abs(mem_edges.c.weight).desc()
    joined = select(mem_edges).order_by(weight, mem_edges.c.source_id, mem_edges.c.target_id).limit(limit)
    found = [
        ((r.source_kind, r.source_id), (r.target_kind, r.target_id), r.relation, float(r.weight))
        for r in cx.execute(joined)
    ]
    left = limit - len(found)
    resting = select(mem_sources).where(mem_sources.c.source_kind != "session")
    resting = resting.order_by(mem_sources.c.at.desc(), mem_sources.c.owner_id, mem_sources.c.source_id)
    found += [
        ((r.owner_kind, r.owner_id), (r.source_kind, r.source_id), "part_of", SOURCE_WEIGHT * float(r.weight))
        for r in cx.execute(resting.limit(left))
    ]
    return found


def texts(cx: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of drawers as they may be shown."""
    found: dict[str, str] = {}
    for part in batches(ids):
        found.update((id_, served(drawer)) for id_, drawer in drawers_by_id(cx, part).items())
    return found


def put_valences(cx: Connection, felt: Mapping[int, tuple[float, float]], source: str, now: int) -> None:
    """Note what episodes feel like, (valence, confidence) by rid, where nobody has said so before."""
    if not felt:
        return
    _rows_for(cx, list(felt), now)
    cx.execute(
        update(mem_episodes)
        .where(mem_episodes.c.drawer == bindparam("_rid"), mem_episodes.c.valence_source != "user")
        .values(valence=bindparam("_valence"), valence_confidence=bindparam("_sure"), valence_source=source),
        [{"_rid": rid, "_valence": valence, "_sure": sure} for rid, (valence, sure) in felt.items()],
    )


def put_ratings(cx: Connection, rated: Sequence[Rated], *, actor: str, now: int) -> None:
    """Note scores and move episodes to their states, each with a row of history; one transaction.

    An episode whose state somebody else has changed since it was read keeps it.
    """
    if not rated:
        return
    _rows_for(cx, [one.rid for one in rated], now)
    cx.execute(
        update(mem_episodes)
        .where(mem_episodes.c.drawer == bindparam("_rid"))
        .values(score=bindparam("_score"), low_cycles=bindparam("_low")),
        [{"_rid": one.rid, "_score": one.score, "_low": one.low} for one in rated],
    )
    moving = [one for one in rated if one.state != one.before]
    held: dict[int, str] = {}
    for part in batches([one.rid for one in moving]):
        query = select(mem_episodes.c.drawer, mem_episodes.c.state).where(mem_episodes.c.drawer.in_(part))
        held.update((rid, state) for rid, state in cx.execute(query))
    moving = [one for one in moving if held.get(one.rid) == one.before]
    if not moving:
        return
    cx.execute(
        update(mem_episodes)
        .where(mem_episodes.c.drawer == bindparam("_rid"))
        .values(state=bindparam("_state"), reason=bindparam("_reason")),
        [{"_rid": one.rid, "_state": one.state, "_reason": one.reason} for one in moving],
    )
    cx.execute(
        insert(mem_history),
        [
            {
                "kind": "drawer",
                "id": one.id,
                "what": "state",
                "old": one.before,
                "new": one.state,
                "reason": one.reason,
                "actor": actor,
                "evidence_json": "[]",
                "at": now,
            }
            for one in moving
        ],
    )


def begin_cycle(cx: Connection, job: str, wing: str | None, episodes: int, now: int) -> int:
    """Note that a cycle begins; returns its rid."""
    values = {"job": job, "wing": wing, "episodes": episodes, "result_json": "{}", "started_at": now}
    key = cx.execute(insert(mem_cycles).values(**values)).inserted_primary_key
    return int(key[0]) if key else 0


def end_cycle(cx: Connection, rid: int, result: Mapping[str, Any], now: int) -> None:
    """Note what a cycle came to."""
    values = {"result_json": to_json(dict(result)), "finished_at": now}
    cx.execute(update(mem_cycles).where(mem_cycles.c.rid == rid).values(**values))


def note_progress(cx: Connection, rid: int, result: Mapping[str, Any]) -> None:
    """Note how far a cycle has come, in the transaction that brings it there."""
    cx.execute(update(mem_cycles).where(mem_cycles.c.rid == rid).values(result_json=to_json(dict(result))))


def stopped_cycle(cx: Connection, job: str, wing: str | None = None) -> Cycle | None:
    """Return the last cycle of a job in a wing if it was stopped before its end."""
    query = select(mem_cycles).where(mem_cycles.c.job == job, mem_cycles.c.wing.is_not_distinct_from(wing))
    row = cx.execute(query.order_by(mem_cycles.c.rid.desc()).limit(1)).first()
    return None if row is None or row.finished_at is not None else _cycle(row)


def last_cycle(cx: Connection, job: str, wing: str | None = None) -> Cycle | None:
    """Return the last cycle of a job in a wing (None: the whole palace) that came to its end."""
    return next(iter(last_cycles(cx, job, 1, wing)), None)


def last_cycles(cx: Connection, job: str, limit: int, wing: str | None = None) -> list[Cycle]:
    """Return the last cycles of a job that came to their end, the latest first."""
    query = select(mem_cycles).where(
        mem_cycles.c.job == job,
        mem_cycles.c.wing.is_not_distinct_from(wing),
        mem_cycles.c.finished_at.is_not(None),
    )
    return [_cycle(row) for row in cx.execute(query.order_by(mem_cycles.c.rid.desc()).limit(limit))]


def latest_cycle(cx: Connection, job: str) -> Cycle | None:
    """Return the cycle of a job that came to its end last, whatever its wing."""
    query = select(mem_cycles).where(mem_cycles.c.job == job, mem_cycles.c.finished_at.is_not(None))
    row = cx.execute(query.order_by(mem_cycles.c.rid.desc()).limit(1)).first()
    return None if row is None else _cycle(row)


def last_end(cx: Connection, job: str) -> int | None:
    """Return when a cycle of a job last came to its end, whatever its wing."""
    query = select(func.max(mem_cycles.c.finished_at)).where(mem_cycles.c.job == job)
    found: int | None = cx.execute(query).scalar()
    return found


def count_cycles(cx: Connection, job: str) -> int:
    """Return how many cycles of a job came to their end."""
    query = select(func.count()).where(mem_cycles.c.job == job, mem_cycles.c.finished_at.is_not(None))
    return int(cx.execute(query).scalar_one())


def recalled_since(cx: Connection, moment: int) -> set[str]:
    """Return the ids of everything that was recalled since a moment, as far as the log goes back."""
    query = select(mem_recalls.c.found_json).where(mem_recalls.c.at >= moment)
    return {id_ for found in cx.execute(query).scalars() for id_ in json.loads(found)}


def _cycle(row: Any) -> Cycle:
    told = json.loads(row.result_json)
    return Cycle(row.rid, row.job, row.wing, row.episodes, told, row.started_at, row.finished_at)


def _rows_for(cx: Connection, rids: Sequence[int], now: int) -> None:
    fresh = insert(mem_episodes).prefix_with("OR IGNORE")
    cx.execute(fresh, [{**NEW_EPISODE, "drawer": rid, "created_at": now} for rid in rids])
