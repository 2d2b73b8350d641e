"""Joining memories with each other, and with facts of the graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from castle.errors import NotFoundError, UsageError
from castle.store.graph_tables import triples
from castle.store.mind_edges import add_edge
from castle.store.mind_rows import resolve
from castle.store.mind_suggestions import suggestions

if TYPE_CHECKING:
    from castle.store.palace import Palace

REMEMBERED = ("drawer", "fact", "procedure", "working")


def associate(
    palace: Palace, source_id: str, target_id: str, weight: float, relation_type: str
) -> dict[str, Any]:
    """Join two things and say so, with what is suggested where a fact now contradicts one of the graph."""
    now = palace.ledger.clock()
    with palace.ledger.write() as cx:
        ends = [_end(cx, id_) for id_ in (source_id, target_id)]
        kinds = [kind for kind, _ in ends]
        if kinds == ["triple", "triple"]:
            raise UsageError("two facts of the graph are joined by what they are about: name a memory")
        add_edge(cx, ends[0], ends[1], relation_type, weight, origin="user", now=now)
        stated = [id_ for kind, id_ in ends if kind == "fact"] if "triple" in kinds else []
        raised = suggestions(cx, now, facts=stated) if stated else []
    told: dict[str, Any] = {"source": ends[0][1], "target": ends[1][1], "weight": weight}
    if raised:
        told["suggestions"] = [asdict(one) for one in raised]
    return {**told, "relation_type": relation_type}


def _end(cx: Connection, id_: str) -> tuple[str, str]:
    """Return the kind and id of what may be associated: something of a layer, or a fact of the graph."""
    given = id_.strip().lower()
    if cx.execute(select(triples.c.id).where(triples.c.id == given).limit(1)).first() is not None:
        return "triple", given
    kind, full = resolve(cx, id_)
    if kind not in REMEMBERED:
        raise NotFoundError(f"{full} is a {kind}: only what is in one of the layers is associated")
    return kind, full
