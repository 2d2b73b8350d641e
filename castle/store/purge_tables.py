"""The tables of purges: what was destroyed when, by whom and why, and keyed hashes that keep it away.

A drawer that was purged stays as a stub with neither text nor bytes, so that its source still says where it
stood. ``tag`` and ``anchor`` are keyed with the palace's salt: they tell the text when it is met again and do
not give it back. Both are NULL where a text is too short to be looked for elsewhere.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from castle.store.schema import tables

purges = Table(
    "purges",
    tables,
    Column("id", Integer, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("drawers", Integer, nullable=False),
    Column("sources", Integer, nullable=False),
    Column("finished_at", BigInteger, nullable=True),
)
"""``state`` is ``begun``, ``erased`` once the ledger holds nothing of it any more, or ``done``."""

purged = Table(
    "purged",
    tables,
    Column("drawer", ForeignKey("drawers.rid"), primary_key=True),
    Column("purge", ForeignKey("purges.id"), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("tag", LargeBinary, nullable=True),
    Column("length", Integer, nullable=True),
    Column("anchor", Integer, nullable=True),
    Index("ix_purged_purge", "purge"),
)
"""``size`` counts the bytes that there were, ``length`` characters of the text without space around it."""

purge_inputs = Table(
    "purge_inputs",
    tables,
    Column("purge", ForeignKey("purges.id"), primary_key=True),
    Column("input", LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)
"""Keys of cached vectors that go, kept until a purge is done: who embeds meanwhile may write them again."""
