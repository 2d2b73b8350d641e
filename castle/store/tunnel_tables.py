"""The table of tunnels made by hand.

A row is one version of a tunnel: ``id`` names it, ``[recorded_at, ended_at)`` is when it stood. A change ends
the version and writes the next one; deleting only ends it. Wings are stored under their present names:
renaming a wing renames it here.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text

from castle.store.schema import tables

tunnels = Table(
    "tunnels",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("source_wing", Text, nullable=False),
    Column("source_room", Text, nullable=False),
    Column("source_drawer", ForeignKey("drawers.rid"), nullable=True),
    Column("target_wing", Text, nullable=False),
    Column("target_room", Text, nullable=False),
    Column("target_drawer", ForeignKey("drawers.rid"), nullable=True),
    Column("label", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("recorded_by", Text, nullable=False),
    Column("ended_at", BigInteger, nullable=True),
    Column("ended_by", Text, nullable=True),
    Index("ix_tunnels_id", "id"),
)
