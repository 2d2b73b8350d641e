"""The tables of closets and AAAK lines, derived from drawers and never quoted for longer than these stand.

Every row that repeats words of a drawer is tied to it by ``seq``: a drawer that was superseded, forgotten,
restored or moved has a new one, so that the row is not read any more. ``closets`` says for which state of a
source the rows were made: ``generation`` is its revision, the newest ``seq`` among its current drawers and
their number.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text

from castle.store.schema import tables

closets = Table(
    "closets",
    tables,
    Column("source", ForeignKey("sources.id"), primary_key=True),
    Column("generation", Text, nullable=False),
    Column("builder", Text, nullable=False),
    Column("built_at", BigInteger, nullable=False),
)

closet_lines = Table(
    "closet_lines",
    tables,
    Column("id", Integer, primary_key=True),
    Column("source", ForeignKey("closets.source", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("line", Text, nullable=False),
    Index("ix_closet_lines_source", "source", "ordinal"),
)

closet_drawers = Table(
    "closet_drawers",
    tables,
    Column("line", ForeignKey("closet_lines.id", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("drawer", ForeignKey("drawers.rid", ondelete="CASCADE"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("line", "ordinal"),
    Index("ix_closet_drawers_drawer", "drawer"),
    sqlite_with_rowid=False,
)

aaak = Table(
    "aaak",
    tables,
    Column("drawer", ForeignKey("drawers.rid", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("builder", Text, nullable=False),
    Column("line", Text, nullable=False),
    Column("original_tokens", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
)
