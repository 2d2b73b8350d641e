"""The indexes of a large table of vectors: of what a scope may name, and of the vectors themselves.

They change no answer but for the few drawers that the index of vectors may miss; rows that came after an
index was made are read as if there was none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INDEXED_ROWS = 20_000
"""Rows from which indexes of what a scope may name pay: below, a scan costs no more."""
ANN_ROWS = 100_000
"""Rows in scope from which the index of vectors answers; below, every vector is read."""
PARTS = 16
"""Parts of the index of vectors. All of them are read: a quarter holds less than .98 of the best."""
REFINE = 4
"""How many times the limit is compared exactly, after the index has chosen by one bit a dimension."""
UNINDEXED_SHARE = 8
"""An index is made anew when one in so many rows has come since."""

COLUMNS = ("id", "source", "authored_at", "wing", "room", "role", "kind", "state", "vector")
_TREES = ("id", "source", "authored_at")


def pays(table: Any, where: str) -> bool:
    """Whether so many rows fulfil a condition that reading all of their vectors costs more than the index."""
    return bool(table.count_rows() >= ANN_ROWS and table.count_rows(where) >= ANN_ROWS)


def refresh(table: Any, columns: Sequence[str] = COLUMNS) -> None:
    """Make the indexes that a table of this size needs, or make them anew where many rows have come since."""
    from lancedb.index import Bitmap, BTree, IvfRq

    rows = table.count_rows()
    # Such an index takes whole bytes.
    indexable = table.schema.field("vector").type.list_size % 8 == 0
    for column in columns:
        if rows < (ANN_ROWS if column == "vector" else INDEXED_ROWS):
            continue
        if column == "vector" and not indexable:
            continue
        known = table.index_stats(f"{column}_idx")
        if known is not None and known.num_unindexed_rows <= max(INDEXED_ROWS, rows // UNINDEXED_SHARE):
            continue
        if column == "vector":
            config: object = IvfRq(distance_type="cosine", num_partitions=PARTS)
        else:
            config = BTree() if column in _TREES else Bitmap()
        table.create_index(column, config=config, replace=True)
