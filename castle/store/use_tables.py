"""The tables of use: drawers that were pinned, how often each was looked at, and the ways in by rank.

Both are about drawers and no part of them: what is written here gives no drawer another change number. The
two indexes let the newest drawers of a room, and those of the highest novelty, be read without a look at the
others.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, text

from castle.records import HIDDEN_KINDS
from castle.store.novelty_tables import novelty
from castle.store.schema import drawers, tables

pins = Table(
    "pins",
    tables,
    Column("drawer", ForeignKey("drawers.rid", ondelete="CASCADE"), primary_key=True),
    Column("pinned_at", BigInteger, nullable=False),
    Column("pinned_by", Text, nullable=False),
)

uses = Table(
    "uses",
    tables,
    Column("drawer", ForeignKey("drawers.rid", ondelete="CASCADE"), primary_key=True),
    Column("count", Integer, nullable=False),
    Column("used_at", BigInteger, nullable=False),
    Index("ix_uses_count", "count"),
)

ORDINARY = (
    "seq IS NOT NULL AND state = 'current' AND kind NOT IN ("
    + ", ".join(f"'{kind}'" for kind in HIDDEN_KINDS)
    + ")"
)
"""The condition of the first index. A query that has it word for word may be answered from the index."""

RECENT = "ix_drawers_recent"
NOVEL = "ix_novelty_score"

Index(RECENT, drawers.c.wing, drawers.c.room, drawers.c.authored_at, sqlite_where=text(ORDINARY))
Index(NOVEL, novelty.c.score, sqlite_where=text("score IS NOT NULL"))
