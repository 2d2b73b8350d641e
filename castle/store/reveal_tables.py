"""The table of what was revealed: who saw the sealed text of which drawer, and when; never the text."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text

from castle.store.schema import tables

reveals = Table(
    "reveals",
    tables,
    Column("id", Integer, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("drawer", ForeignKey("drawers.rid"), nullable=False),
    Column("kinds", Text, nullable=False),
    Index("ix_reveals_drawer", "drawer"),
)
