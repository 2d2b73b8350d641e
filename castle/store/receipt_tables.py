"""The table of receipts: what each save of a session was to store, and what it did store."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from castle.store.schema import tables

receipts = Table(
    "receipts",
    tables,
    Column("id", Integer, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("harness", Text, nullable=False),
    Column("hook", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("transcript", Text, nullable=False),
    Column("expected", BigInteger, nullable=False),
    Column("stored", BigInteger, nullable=False),
    Column("new", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("settled_at", BigInteger, nullable=True),
    Column("seen", Boolean, nullable=False),
    Index("ix_receipts_session", "session"),
    Index("ix_receipts_transcript", "transcript"),
)
