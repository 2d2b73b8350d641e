"""The table of novelty: how far each current drawer is from everything that was filed before it.

A row without ``score`` is known and waits for it. ``input`` is the key of the drawer's vector in the cache,
``nearest`` the earlier drawer that decided the score. Order of filing is the order of ``drawers.rid``:
unlike ``seq`` it stays when a drawer is moved, forgotten or restored. How far the table has come is a row of
``meta``.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, LargeBinary, Table, Text

from castle.store.schema import tables

META_KEY = "novelty"
"""The row of ``meta`` that says for which embedder the scores are and which change they have reached."""

novelty = Table(
    "novelty",
    tables,
    Column("drawer", ForeignKey("drawers.rid", ondelete="CASCADE"), primary_key=True),
    Column("input", LargeBinary, nullable=False),
    Column("score", Float, nullable=True),
    Column("nearest", ForeignKey("drawers.rid", ondelete="SET NULL"), nullable=True),
    Index("ix_novelty_nearest", "nearest"),
    Index("ix_novelty_waiting", "drawer", sqlite_where=Column("score", Text).is_(None)),
)
