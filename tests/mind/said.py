"""Messages that people and agents are given in tests, filed without mining a transcript."""

from __future__ import annotations

from castle.mine.notes import add
from castle.store.palace import Palace
from castle.store.schema import drawers


def say(palace: Palace, text: str, *, role: str = "user", wing: str = "w", kind: str = "message") -> str:
    """File a text as a message of somebody and return its drawer."""
    added = add(palace, text, wing=wing, room="talk", source_file="t", added_by="test", halls={})
    with palace.ledger.write() as cx:
        for id_ in added.ids:
            cx.execute(drawers.update().where(drawers.c.id == id_).values(role=role, kind=kind))
    return added.id
