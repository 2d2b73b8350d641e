"""The tables of the knowledge graph, in the same database as the drawers that are its evidence.

A row of ``triples`` is one version of a fact: ``id`` names the fact, ``[valid_from, valid_to)`` is when it
held, ``[recorded_at, ended_at)`` is when the graph said so. A change ends the version and writes the next
one, so nothing that was ever recorded is lost. NULL in ``valid_from`` or ``valid_to`` is a bound that nobody
stated.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, Table, Text

from castle.store.schema import tables

entities = Table(
    "entities",
    tables,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
)

entity_aliases = Table(
    "entity_aliases",
    tables,
    Column("alias", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("entity", ForeignKey("entities.id"), nullable=False),
    Index("ix_entity_aliases_entity", "entity"),
)

triples = Table(
    "triples",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("subject", ForeignKey("entities.id"), nullable=False),
    Column("predicate", Text, nullable=False),
    Column("object", ForeignKey("entities.id"), nullable=False),
    Column("valid_from", BigInteger, nullable=True),
    Column("valid_to", BigInteger, nullable=True),
    Column("valid_from_text", Text, nullable=True),
    Column("valid_to_text", Text, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("recorded_by", Text, nullable=False),
    Column("ended_at", BigInteger, nullable=True),
    Column("ended_by", Text, nullable=True),
    Index("ix_triples_id", "id"),
    Index("ix_triples_subject", "subject", "predicate", "object"),
    Index("ix_triples_object", "object"),
    Index("ix_triples_predicate", "predicate"),
    Index("ix_triples_validity", "valid_from", "valid_to"),
)

evidence = Table(
    "evidence",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("triple", Text, nullable=False),
    Column("drawer", ForeignKey("drawers.rid"), nullable=True),
    Column("source", Text, nullable=False),
    Column("adapter", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("valid_from_text", Text, nullable=True),
    Column("valid_to_text", Text, nullable=True),
    Column("recorded_at", BigInteger, nullable=False),
    Column("confirmed_at", BigInteger, nullable=False),
    Index("ix_evidence_triple", "triple"),
    Index("ix_evidence_drawer", "drawer"),
)
