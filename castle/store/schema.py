"""The tables of the ledger, declared once; every other module reads and writes through these names.

Times are microseconds since the epoch (UTC). ``seq`` numbers changes: a drawer that changes takes a new,
higher one inside the write transaction, so that commit order is ``seq`` order; it is NULL while the
revision that brings the drawer is not complete.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 3
"""Raise it with every change of a table or index, and add the migration: see ``castle.store.migrate``."""

tables = MetaData()

meta = Table(
    "meta",
    tables,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

lineage = Table(
    "lineage",
    tables,
    Column("seq", BigInteger, primary_key=True),
    Column("token", Text, nullable=False),
)
"""A random token for each run of change numbers, by the last of them: no two histories share one."""

projects = Table(
    "projects",
    tables,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

project_aliases = Table(
    "project_aliases",
    tables,
    Column("kind", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("project", ForeignKey("projects.id"), nullable=False),
    PrimaryKeyConstraint("kind", "value"),
)

wing_names = Table(
    "wing_names",
    tables,
    Column("old", Text, primary_key=True),
    Column("new", Text, nullable=False),
)

sources = Table(
    "sources",
    tables,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("project", ForeignKey("projects.id"), nullable=True),
    Column("path", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("wing", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("signature", Text, nullable=False),
    Column("gone_at", BigInteger, nullable=True),
    Column("forgotten_at", BigInteger, nullable=True),
    Index("ix_sources_wing", "wing"),
    Index("ix_sources_project", "project"),
)

revisions = Table(
    "revisions",
    tables,
    Column("source", ForeignKey("sources.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("signature", Text, nullable=False),
    Column("normalizer", Text, nullable=False),
    Column("encoding", Text, nullable=False),
    Column("authored_at", BigInteger, nullable=False),
    Column("filed_at", BigInteger, nullable=False),
    Column("added_by", Text, nullable=False),
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("source", "number"),
)

drawers = Table(
    "drawers",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("seq", BigInteger, nullable=True, unique=True),
    Column("source", ForeignKey("sources.id"), nullable=False),
    Column("wing", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("hall", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("raw", LargeBinary, nullable=True),
    Column("sha256", LargeBinary, nullable=False),
    Column("sealed", Text, nullable=True),
    Column("detector_version", Integer, nullable=False),
    Column("context", Text, nullable=False),
    Column("authored_at", BigInteger, nullable=False),
    Column("filed_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=True),
    Column("added_by", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("metadata", Text, nullable=True),
    Index("ix_drawers_place", "state", "wing", "room"),
    Index("ix_drawers_source", "source"),
    Index("ix_drawers_sha256", "sha256"),
    Index("ix_drawers_detector", "detector_version", "seq"),
)

membership = Table(
    "membership",
    tables,
    Column("source", ForeignKey("sources.id"), nullable=False),
    Column("from_revision", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("to_revision", Integer, nullable=True),
    Column("drawer", ForeignKey("drawers.rid"), nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("first_line", Integer, nullable=False),
    Column("last_line", Integer, nullable=False),
    PrimaryKeyConstraint("source", "from_revision", "ordinal"),
    UniqueConstraint("drawer", "from_revision"),
    sqlite_with_rowid=False,
)

tombstones = Table(
    "tombstones",
    tables,
    Column("drawer", ForeignKey("drawers.rid"), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("cause", Text, nullable=False),
)

vectors = Table(
    "vectors",
    tables,
    Column("embedder", Text, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("embedder", "input"),
    sqlite_with_rowid=False,
)
