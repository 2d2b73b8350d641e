"""The texts of things of the mind: what each is found by, in words and in meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from castle.store.ledger import batches
from castle.store.mind_tables import (
    mem_facts,
    mem_hypotheses,
    mem_ingest_queue,
    mem_preferences,
    mem_procedures,
    mem_reflections,
    mem_working,
)

MOST_EMBEDDED = 10_000
"""Characters of a text by which it is embedded: what it is about stands in them, and more takes long."""

_TABLES = {
    "fact": (mem_facts, "statement"),
    "procedure": (mem_procedures, "content"),
    "hypothesis": (mem_hypotheses, "text"),
    "preference": (mem_preferences, "text"),
    "reflection": (mem_reflections, "text"),
    "working": (mem_working, "content"),
    "pending": (mem_ingest_queue, "text"),
}


def texts_of(cx: Connection, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the text that each thing is embedded by; of a procedure it is what brings it to mind."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for kind, id_ in keys:
        by_kind[kind].append(id_)
    found: dict[tuple[str, str], str] = {}
    for kind, ids in by_kind.items():
        if kind not in _TABLES:
            continue
        table, column = _TABLES[kind]
        for part in batches(ids):
            key = table.c.event if kind == "pending" else table.c.id
            for row in cx.execute(select(table, key.label("key")).where(key.in_(part))):
                found[kind, row.key] = _embedded(kind, row, getattr(row, column))
    return found


def _embedded(kind: str, row: Any, text: str) -> str:
    return (str(row.trigger) if kind == "procedure" and row.trigger else text)[:MOST_EMBEDDED]
