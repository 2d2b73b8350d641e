"""The indexes of a large table of vectors: of what a scope may name, and of the vectors themselves.

They change no answer but for the few drawers that the index of vectors may miss; rows that came after an
index was made are read as if there was none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

INDEXED_ROWS = 20_000
"""Rows from which indexes of what a scope may name pay: below, a scan costs no more."""
ANN_ROWS = 100_000
"""Rows in scope from which the index of vectors answers; below, every vector is read."""
LEAST_PARTS = 16
PART_ROWS = 16_000
"""Rows in a part of the index of vectors, of which there are LEAST_PARTS at least."""
EVERY_PART = 1 << 16
"""Parts that are read, which is all of them: a quarter holds less than .98 of the best. LanceDB divides the
parts of an index further when it tidies its table, so that their number is not what it was made with."""
REFINE = 4
"""How many times the limit is compared exactly, after the index has chosen by one bit a dimension."""
UNINDEXED_SHARE = 8
"""An index is made anew when one in so many rows has come since."""

FEW_FRAGMENTS = 16
"""Fragments that are left alone when an index of vectors is made. To search a million rows in 250 fragments
takes three times as long as in two."""
MANY_FRAGMENTS = 200
"""Fragments from which an index of vectors is made anew for being spread over them."""
AT_ONCE = timedelta(milliseconds=1)

COLUMNS = ("id", "source", "authored_at", "wing", "room", "role", "kind", "state", "vector")
_TREES = ("id", "source", "authored_at")


def pays(table: Any, where: str) -> bool:
    """Whether so many rows fulfil a condition that reading all of their vectors costs more than the index."""
    return bool(table.count_rows() >= ANN_ROWS and table.count_rows(where) >= ANN_ROWS)


def gather(table: Any) -> None:
    """Rewrite a large table in few fragments before its index of vectors is made, if it has many.

    Meanwhile there is no such index: LanceDB would divide it into other parts. Earlier versions are deleted,
    as they take the room of the whole table; whoever reads one has to open the table again.
    """
    rows = table.count_rows()
    fragments = table.stats()["fragment_stats"]["num_fragments"]
    if not _wanted(table, "vector", rows) or fragments <= FEW_FRAGMENTS:
        return
    known = table.index_stats("vector_idx")
    if _is_late(known, rows) or fragments > MANY_FRAGMENTS:
        if known is not None:
            table.drop_index("vector_idx")
        table.optimize(cleanup_older_than=AT_ONCE)


def refresh(table: Any, columns: Sequence[str] = COLUMNS) -> None:
    """Make the indexes that a table of this size needs, or make them anew where many rows have come since."""
    from lancedb.index import Bitmap, BTree, IvfRq

    rows = table.count_rows()
    for column in columns:
        if not _wanted(table, column, rows) or not _is_late(table.index_stats(f"{column}_idx"), rows):
            continue
        if column == "vector":
            parts = max(LEAST_PARTS, rows // PART_ROWS)
            config: object = IvfRq(distance_type="cosine", num_partitions=parts)
        else:
            config = BTree() if column in _TREES else Bitmap()
        table.create_index(column, config=config, replace=True)


def _wanted(table: Any, column: str, rows: int) -> bool:
    """Whether a table of so many rows needs an index of a column."""
    if column != "vector":
        return rows >= INDEXED_ROWS
    # Such an index takes whole bytes.
    return rows >= ANN_ROWS and table.schema.field("vector").type.list_size % 8 == 0


def _is_late(known: Any, rows: int) -> bool:
    """Whether there is no index, or many rows have come since it was made."""
    return known is None or known.num_unindexed_rows > max(INDEXED_ROWS, rows // UNINDEXED_SHARE)
