"""The tables of the registry: which entities are looked for in drawers, and where they were found.

An entity of the registry is a row of ``entities``, shared with the graph, and one of ``registry``; its other
names are in ``entity_aliases``. A forgotten one keeps both, so that nothing registers it again by itself.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, Table, Text
from sqlalchemy import PrimaryKeyConstraint as PrimaryKey

from castle.store import graph_tables
from castle.store.schema import tables

registry = Table(
    "registry",
    tables,
    Column("entity", ForeignKey(graph_tables.entities.c.id), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("ambiguous", Boolean, nullable=False),
    Column("added_at", BigInteger, nullable=False),
    Column("added_by", Text, nullable=False),
    Column("forgotten_at", BigInteger, nullable=True),
)

mentions = Table(
    "mentions",
    tables,
    Column("entity", ForeignKey("registry.entity"), nullable=False),
    Column("drawer", ForeignKey("drawers.rid"), nullable=False),
    PrimaryKey("entity", "drawer"),
    Index("ix_mentions_drawer", "drawer"),
    sqlite_with_rowid=False,
)

name_backlog = Table(
    "name_backlog",
    tables,
    Column("entity", ForeignKey("registry.entity"), primary_key=True),
    Column("done", Integer, nullable=False),
    Column("upto", Integer, nullable=False),
)
"""Entities that are still to be looked for in the drawers ``(done, upto]``, which were filed before them."""
