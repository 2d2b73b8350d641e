"""Rows of drawers: how they are written, become current, change and are superseded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, update

from castle.store.ledger import batches, marks, next_seqs, run, run_many
from castle.store.mentions import link_mentions
from castle.store.purged import salt_of, stubs_among
from castle.store.schema import drawers

_COLUMNS = tuple(column.name for column in drawers.columns)


def insertion(table: str, names: Sequence[str]) -> str:
    """Return the statement that writes a row of a table."""
    return f"INSERT INTO {table}({', '.join(names)}) VALUES ({marks(names)})"


_INSERT = insertion("drawers", _COLUMNS)


def store_drawers(cx: Connection, rows: Sequence[dict[str, object]]) -> list[int]:
    """Write the drawers that are not there yet and return the rids of all.

    A drawer that another attempt staged and never completed takes the values of this one.
    """
    known: dict[object, int] = {}
    staged: list[int] = []
    for batch in batches([row["id"] for row in rows]):
        query = f"SELECT id, rid, seq, text = '' AND raw IS NULL FROM drawers WHERE id IN ({marks(batch)})"
        for id_, rid, seq, stub in run(cx, query, batch):
            known[id_] = rid
            if seq is None and not stub:
                staged.append(rid)
    left = set(staged)
    again = [{**row, "_rid": known[row["id"]]} for row in rows if known.get(row["id"]) in left]
    if again:
        cx.execute(update(drawers).where(drawers.c.rid == bindparam("_rid")), again)
    fresh = [row for row in rows if row["id"] not in known]
    if not fresh:
        return [known[row["id"]] for row in rows]
    first = (run(cx, "SELECT max(rid) FROM drawers").fetchone()[0] or 0) + 1
    for rid, row in enumerate(fresh, start=first):
        row["rid"] = known[row["id"]] = rid
    run_many(cx, _INSERT, ([row[name] for name in _COLUMNS] for row in fresh))
    return [known[row["id"]] for row in rows]


def touch(cx: Connection, rids: Sequence[int], **values: object) -> None:
    """Change drawers and give each a new ``seq``, so that every projection sees it."""
    if not rids:
        return
    first = next_seqs(cx, len(rids))
    names = ", ".join(f"{name} = ?" for name in ("seq", *values))
    rows = ((seq, *values.values(), rid) for seq, rid in enumerate(rids, start=first))
    run_many(cx, f"UPDATE drawers SET {names} WHERE rid = ?", rows)


def end_drawers(cx: Connection, rids: Iterable[int], now: int) -> None:
    """Mark drawers superseded; forgotten ones stay forgotten."""
    states = _states(cx, list(rids))
    touch(cx, [rid for rid, state in states.items() if state == "current"], state="superseded", ended_at=now)


class Coming:
    """Drawers that become current with a transaction: numbered and linked for all of its sources at once."""

    def __init__(self) -> None:
        self._rids: list[int] = []

    def add(self, rids: Iterable[int]) -> None:
        """Take drawers that have been staged."""
        self._rids.extend(rids)

    def begin(self, cx: Connection) -> None:
        """Make them current, in the order in which they came."""
        touch(cx, self._rids)
        link_mentions(cx, self._rids)
        self._rids = []


def begin_drawers(cx: Connection, rids: Sequence[int], coming: Coming) -> int:
    """Let drawers become current; return how many the palace did not hold before."""
    fresh = [
        rid
        for batch in batches(rids)
        for (rid,) in run(
            cx,
            f"SELECT rid FROM drawers WHERE rid IN ({marks(batch)}) AND seq IS NULL ORDER BY rid",
            batch,
        )
    ]
    coming.add(fresh)
    known = set(fresh)
    stubs = stubs_among(cx, fresh) if salt_of(cx) is not None else {}
    states = _states(cx, [rid for rid in rids if rid not in known])
    back = [rid for rid, state in states.items() if state == "superseded"]
    touch(cx, back, state="current", ended_at=None)
    return len(fresh) - len(stubs)


def _states(cx: Connection, rids: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for batch in batches(rids):
        query = f"SELECT rid, state FROM drawers WHERE rid IN ({marks(batch)})"
        found.update(run(cx, query, batch))
    return {rid: found[rid] for rid in rids}
