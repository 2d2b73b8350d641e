"""The tables of conversations: sessions, their messages, blobs, and how far each file was read.

A session is a source of kind ``session``. A message row names one slice of a transcript as its format gave
it; the drawers with its ``message_id`` hold its text. Blocks that their author marked private, and text that
Castle itself had injected, have a row with their size and no drawer.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from castle.store.schema import tables

sessions = Table(
    "sessions",
    tables,
    Column("source", ForeignKey("sources.id"), primary_key=True),
    Column("session", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("cwd", Text, nullable=False),
    Column("git_branch", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("started_at", BigInteger, nullable=True),
    Column("ended_at", BigInteger, nullable=True),
    Column("metadata", Text, nullable=True),
    Index("ix_sessions_session", "session"),
)

messages = Table(
    "messages",
    tables,
    Column("source", ForeignKey("sources.id"), nullable=False),
    Column("id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("whole", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("said_at", BigInteger, nullable=True),
    Column("shown", Boolean, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("metadata", Text, nullable=True),
    PrimaryKeyConstraint("source", "id", "version"),
    Index("ix_messages_position", "source", "position"),
    Index("ix_messages_id", "id"),
    Index("ix_messages_whole", "whole"),
    sqlite_with_rowid=False,
)

blobs = Table(
    "blobs",
    tables,
    Column("sha256", LargeBinary, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

attachments = Table(
    "attachments",
    tables,
    Column("source", ForeignKey("sources.id"), nullable=False),
    Column("message", Text, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("ref", Text, nullable=False),
    Column("blob", ForeignKey("blobs.sha256"), nullable=True),
    PrimaryKeyConstraint("source", "message", "ordinal"),
)

readings = Table(
    "readings",
    tables,
    Column("address", Text, primary_key=True),
    Column("format", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("edge", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
)
