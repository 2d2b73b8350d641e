"""Novelty computed one pair at a time, from the definition."""

from __future__ import annotations

import numpy as np
from sqlalchemy import select

from castle.records import HIDDEN_KINDS
from castle.store.catchup import cached_vectors, input_hash
from castle.store.novelty import scores
from castle.store.palace import Palace
from castle.store.reading import changed_rows
from castle.store.schema import drawers


def expected(palace: Palace) -> dict[str, float]:
    """Return the novelty that every current drawer should have."""
    with palace.ledger.read() as cx:
        rows = {row.id: row for row in changed_rows(cx, 0, 10**6) if row.state == "current"}
        filed = [id_ for (id_,) in cx.execute(select(drawers.c.id).order_by(drawers.c.rid)) if id_ in rows]
    units = cached_vectors(palace, [input_hash(row) for row in rows.values()])
    found: dict[str, float] = {}
    for place, id_ in enumerate(filed):
        row = rows[id_]
        best = 0.0
        for earlier in (rows[other] for other in filed[:place]):
            if earlier.kind in HIDDEN_KINDS and row.kind not in HIDDEN_KINDS:
                continue
            cosine = float(np.dot(units[input_hash(row)], units[input_hash(earlier)]))
            best = max(best, 1.0 if earlier.sha256 == row.sha256 else cosine)
        found[id_] = min(1.0, 1.0 - best)
    return found


def stored(palace: Palace) -> dict[str, float]:
    """Return every score that may be used."""
    with palace.ledger.read() as cx:
        return scores(cx, [id_ for (id_,) in cx.execute(select(drawers.c.id))])


def ids(palace: Palace, *texts: str) -> list[str]:
    """Return the ids of the drawers with these texts, in the order of the texts, then of filing."""
    with palace.ledger.read() as cx:
        rows = cx.execute(select(drawers.c.id, drawers.c.text).order_by(drawers.c.rid)).all()
    return [row.id for text in texts for row in rows if row.text == text]
