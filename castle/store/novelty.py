"""Keeping novelty: which drawers have a score, which wait for one, and their vectors as the cache holds them.

Only current drawers are in the table, so that nothing obsolete or forgotten makes another drawer look stale.
A drawer whose nearest earlier one has gone waits for a new score.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update

from castle.records import HIDDEN_KINDS
from castle.store.ledger import batches, get_value, marks, run, run_many, set_value, to_json
from castle.store.novelty_tables import META_KEY, novelty
from castle.store.projection import Watermark
from castle.store.schema import drawers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

nearest = drawers.alias("nearest")
"""The earlier drawer that decided a score, for queries that join ``STANDING``."""

STANDING = novelty.join(drawers, drawers.c.rid == novelty.c.drawer).outerjoin(
    nearest, nearest.c.rid == novelty.c.nearest
)


_ORPHANED = and_(novelty.c.nearest.is_(None), novelty.c.score < 1.0)


def stands() -> ColumnElement[bool]:
    """Return the condition on ``STANDING`` under which a score may be used.

    The drawer is current, and so is the earlier one that the score speaks of.
    """
    return and_(
        novelty.c.score.is_not(None),
        drawers.c.state == "current",
        or_(nearest.c.state == "current", and_(novelty.c.nearest.is_(None), novelty.c.score == 1.0)),
    )


_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class Known:
    """Drawers in the order they were filed, as comparing needs them; every field has one entry for each.

    ``copies`` is equal for equal texts, ``units`` are unit vectors of shape (n, dim), ``scores`` is NaN where
    the drawer waits.
    """

    rids: NDArray[np.int64]
    hidden: NDArray[np.bool_]
    copies: NDArray[np.int64]
    units: NDArray[np.float32]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rids)

    @property
    def bytes(self) -> int:
        """The memory that the vectors take."""
        return int(self.units.nbytes)

    def part(self, start: int, end: int) -> Known:
        """Return those from the ``start``-th to before the ``end``-th; the arrays are shared."""
        cut = slice(start, end)
        return Known(self.rids[cut], self.hidden[cut], self.copies[cut], self.units[cut], self.scores[cut])


@dataclass(frozen=True, slots=True)
class Score:
    """The novelty of one drawer in [0, 1], and the earlier drawer that decided it, None for the first one."""

    rid: int
    score: float
    nearest: int | None


def scores(cx: Connection, ids: Sequence[str]) -> dict[str, float]:
    """Return the novelty of those drawers that have one which still holds; reads nothing but the ledger."""
    if not in_force(cx):
        return {}
    found: dict[str, float] = {}
    for part in batches(ids):
        query = select(drawers.c.id, novelty.c.score).select_from(STANDING)
        found.update((id_, score) for id_, score in cx.execute(query.where(drawers.c.id.in_(part), stands())))
    return found


def counts(cx: Connection) -> tuple[int, int]:
    """Return how many current drawers there are and how many of them have a score."""
    current = and_(drawers.c.state == "current", drawers.c.seq.is_not(None))
    total = cx.execute(select(func.count()).select_from(drawers).where(current)).scalar_one()
    if not in_force(cx):
        return total, 0
    return total, cx.execute(select(func.count()).select_from(STANDING).where(stands())).scalar_one()


# The watermark


def in_force(cx: Connection) -> bool:
    """Whether the scores were made from vectors of the palace's present embedder."""
    return _stored(cx).get("embedder") == _embedder(cx)


def reached(cx: Connection) -> Watermark | None:
    """Return which change the table has reached; None when it is empty or for another embedder."""
    stored = _stored(cx)
    epoch, seq = stored.get("epoch"), stored.get("seq")
    if not in_force(cx) or not isinstance(epoch, str) or not isinstance(seq, int):
        return None
    return Watermark(epoch, seq)


def _stored(cx: Connection) -> dict[str, object]:
    """Return the watermark as it was written; a damaged one is none."""
    try:
        stored = json.loads(get_value(cx, META_KEY) or "{}")
    except ValueError:
        return {}
    return stored if isinstance(stored, dict) else {}


def missing(cx: Connection) -> bool:
    """Whether the table lacks drawers that it was said to have, or holds what is no score."""
    current = and_(drawers.c.state == "current", drawers.c.seq.is_not(None))
    absent = select(drawers.c.rid).where(current, drawers.c.rid.not_in(select(novelty.c.drawer))).limit(1)
    wrong = select(novelty.c.drawer).where(
        or_(
            func.typeof(novelty.c.score).not_in(("real", "integer", "null")),
            func.length(novelty.c.input) != _HASH_BYTES,
        )
    )
    return cx.execute(absent).first() is not None or cx.execute(wrong.limit(1)).first() is not None


def start_over(cx: Connection, mark: Watermark) -> None:
    """Forget every score; ``mark`` is the beginning of the ledger."""
    cx.execute(delete(novelty))
    reach(cx, mark)


def reach(cx: Connection, mark: Watermark) -> None:
    """Record which change the table has reached."""
    set_value(cx, META_KEY, to_json({"embedder": _embedder(cx), "epoch": mark.epoch, "seq": mark.seq}))


def _embedder(cx: Connection) -> str:
    return str(json.loads(get_value(cx, "embedder") or "{}").get("identity", ""))


# Who is in the table


def register(cx: Connection, inputs: dict[str, bytes], away: Sequence[str]) -> None:
    """Take in the current drawers of ``inputs`` (id to the key of its vector) and let go of those away.

    A drawer that is known with the same vector keeps its score.
    """
    held = _held(cx, [*inputs, *away])
    leaving = [id_ for id_ in away if id_ in held]
    leaving += [id_ for id_, key in inputs.items() if held.get(id_, key) != key]
    for part in batches(leaving):
        rids = select(drawers.c.rid).where(drawers.c.id.in_(part))
        _wait(cx, novelty.c.nearest.in_(rids))
        cx.execute(delete(novelty).where(novelty.c.drawer.in_(rids)))
    coming = [id_ for id_, key in inputs.items() if held.get(id_) != key]
    # By id, so that a drawer which has been destroyed meanwhile is passed over.
    statement = "INSERT INTO novelty(drawer, input) SELECT rid, ? FROM drawers WHERE id = ?"
    run_many(cx, statement, ((inputs[id_], id_) for id_ in coming))


def orphans(cx: Connection) -> bool:
    """Whether there are scores whose nearest earlier drawer has been destroyed."""
    return cx.execute(select(novelty.c.drawer).where(_ORPHANED).limit(1)).first() is not None


def release_orphans(cx: Connection) -> None:
    """Let such drawers wait for a new score."""
    _wait(cx, _ORPHANED)


def _held(cx: Connection, ids: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in batches(ids):
        query = f"SELECT id, input FROM drawers JOIN novelty ON drawer = rid WHERE id IN ({marks(part)})"
        found.update(run(cx, query, part))
    return found


def _wait(cx: Connection, condition: ColumnElement[bool]) -> None:
    cx.execute(update(novelty).where(condition).values(score=None, nearest=None))


# Reading for the comparison


def size(cx: Connection) -> int:
    """Return how many drawers are in the table."""
    return cx.execute(select(func.count()).select_from(novelty)).scalar_one()


def scored_after(cx: Connection, rid: int) -> bool:
    """Whether a drawer that was filed after ``rid`` has a score."""
    query = select(novelty.c.drawer).where(novelty.c.drawer > rid, novelty.c.score.is_not(None)).limit(1)
    return cx.execute(query).first() is not None


def first_copy(cx: Connection, rid: int) -> int | None:
    """Return the first current drawer with the text of ``rid`` that counts as filed before it."""
    own = drawers.alias("own")
    query = (
        select(func.min(drawers.c.rid))
        .join(own, own.c.sha256 == drawers.c.sha256)
        .where(own.c.rid == rid, drawers.c.rid < rid)
        .where(drawers.c.state == "current", drawers.c.seq.is_not(None))
        .where(or_(own.c.kind.in_(HIDDEN_KINDS), drawers.c.kind.not_in(HIDDEN_KINDS)))
    )
    return cx.execute(query).scalar()


def registered(cx: Connection) -> list[int]:
    """Return the rids of all drawers in the table, in the order they were filed."""
    return [rid for (rid,) in run(cx, "SELECT drawer FROM novelty ORDER BY drawer")]


def waiting(cx: Connection) -> list[int]:
    """Return the rids of the drawers that wait for a score and have a vector, in the order of filing."""
    query = (
        "SELECT drawer FROM novelty JOIN vectors ON embedder = ? AND vectors.input = novelty.input "
        "WHERE score IS NULL ORDER BY drawer"
    )
    return [rid for (rid,) in run(cx, query, (_embedder(cx),))]


@dataclass(frozen=True, slots=True)
class Standing:
    """A current drawer; ``score`` is None while it waits for one."""

    rid: int
    hidden: bool
    score: float | None


def standing(cx: Connection, ids: Sequence[str]) -> dict[str, Standing]:
    """Return those of these drawers that are current."""
    found: dict[str, Standing] = {}
    for part in batches(ids):
        query = (
            select(drawers.c.id, drawers.c.rid, drawers.c.kind, novelty.c.score)
            .outerjoin(novelty, novelty.c.drawer == drawers.c.rid)
            .where(drawers.c.id.in_(part), drawers.c.state == "current", drawers.c.seq.is_not(None))
        )
        for row in cx.execute(query):
            found[row.id] = Standing(row.rid, row.kind in HIDDEN_KINDS, row.score)
    return found


def kinds(cx: Connection) -> tuple[str, ...]:
    """Return every kind of drawer there is."""
    return tuple(kind for (kind,) in cx.execute(select(drawers.c.kind).distinct()))


def known_between(cx: Connection, first: int, last: int, *, only: Sequence[int] | None = None) -> Known:
    """Return the drawers with ``first <= rid <= last`` that have a usable vector; ``only`` narrows them."""
    import numpy as np

    query = (
        "SELECT novelty.drawer, kind, sha256, score, vector FROM novelty "
        "JOIN drawers ON rid = novelty.drawer "
        "JOIN vectors ON embedder = ? AND vectors.input = novelty.input "
        "WHERE novelty.drawer BETWEEN ? AND ? "
        f"{'' if only is None else 'AND score IS NULL '}ORDER BY novelty.drawer"
    )
    wanted = None if only is None else set(only)
    dim = _dimensions(cx)
    rows = [
        row
        for row in run(cx, query, (_embedder(cx), first, last))
        if len(row[4]) == 2 * dim and (wanted is None or row[0] in wanted)
    ]
    rids, kinds, hashes, scores, blobs = zip(*rows, strict=True) if rows else ((),) * 5
    halves = np.frombuffer(b"".join(blobs), dtype=np.float16)
    wide = halves.astype(np.float32).reshape(len(rows), dim)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    # A damaged vector counts as not there: its drawer waits until it is made again.
    usable = np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)
    return Known(
        rids=np.array(rids, dtype=np.int64)[usable],
        hidden=np.array([kind in HIDDEN_KINDS for kind in kinds], dtype=np.bool_)[usable],
        copies=np.array([tag(sha256) for sha256 in hashes], dtype=np.int64)[usable],
        units=wide[usable] / norms[usable],
        scores=np.array(scores, dtype=np.float64)[usable],  # None becomes NaN
    )


def put(cx: Connection, made: Sequence[Score]) -> None:
    """Store scores; one whose nearest drawer has been destroyed meanwhile is made again later."""
    near = "(SELECT rid FROM drawers WHERE rid = ?)"
    statement = f"UPDATE novelty SET score = ?, nearest = {near} WHERE drawer = ?"
    run_many(cx, statement, ((each.score, each.nearest, each.rid) for each in made))


def _dimensions(cx: Connection) -> int:
    return int(json.loads(get_value(cx, "embedder") or "{}").get("dim", 0))


def tag(sha256: bytes) -> int:
    """Return what ``Known.copies`` holds for the hash of a text."""
    return int.from_bytes(sha256[:8], "big", signed=True)
