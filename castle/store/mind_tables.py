"""The tables of the mind: what is believed, can be done, is preferred and is being worked on.

They are about drawers and no part of them: nothing that is written here changes a drawer or gives it another
change number. An episode is a drawer, and its row here is what may change about it. What a person or an agent
states is filed as a drawer, which its row names; what a machine derives is held here alone, with ``origin``
and with its rows in ``mem_sources``. Drawers are named by their ids, except in ``mem_episodes``, which is as
large as the palace. Times are microseconds since the epoch (UTC), columns that end in ``_json`` hold JSON.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from castle.store.schema import tables

mem_meta = Table(
    "mem_meta",
    tables,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Numbers of the mind as a whole: the last cycles, the calibration of thresholds for an embedder."""

mem_episodes = Table(
    "mem_episodes",
    tables,
    Column("drawer", ForeignKey("drawers.rid", ondelete="CASCADE"), primary_key=True),
    Column("session", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("valence", Float, nullable=False),
    Column("valence_confidence", Float, nullable=False),
    Column("valence_source", Text, nullable=False),
    Column("outcome_valence", Float, nullable=True),
    Column("score", Float, nullable=True),
    Column("low_cycles", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("was_in_wm", Boolean, nullable=False),
    Column("invalidated_at", BigInteger, nullable=True),
    Column("reason", Text, nullable=False),
    Column("access_count", Integer, nullable=False),
    Column("last_access_at", BigInteger, nullable=True),
    Column("tags_json", Text, nullable=False),
    Column("metadata_json", Text, nullable=False),
    Column("projection", LargeBinary, nullable=True),
    Column("projection_spec", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_mem_episodes_state", "state"),
    Index("ix_mem_episodes_session", "session"),
)
"""``state`` is active, dim or cold; ``score`` that of the last consolidation, NULL before one."""

mem_history = Table(
    "mem_history",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("old", Text, nullable=False),
    Column("new", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("evidence_json", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_mem_history_object", "kind", "id"),
)
"""One row for each change of something in the mind: ``what`` names the property."""

mem_working = Table(
    "mem_working",
    tables,
    Column("id", Text, primary_key=True),
    Column("session", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("wing", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("base_priority", Float, nullable=False),
    Column("relevance", Float, nullable=False),
    Column("last_accessed_at", BigInteger, nullable=False),
    Column("was_referenced", Boolean, nullable=False),
    Column("task_completed", Boolean, nullable=False),
    Column("hypothesis", Text, nullable=True),
    Column("tags_json", Text, nullable=False),
    Column("metadata_json", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_mem_working_session", "session"),
)

mem_sessions = Table(
    "mem_sessions",
    tables,
    Column("id", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("wing", Text, nullable=False),
    Column("cwd", Text, nullable=False),
    Column("transcript", Text, nullable=False),
    Column("offsets_json", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=True),
)

mem_facts = Table(
    "mem_facts",
    tables,
    Column("id", Text, primary_key=True),
    Column("statement", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("origin", Text, nullable=False),
    Column("unsupported", Boolean, nullable=False),
    Column("drawer", Text, nullable=True),
    Column("wing", Text, nullable=True),
    Column("norm_hash", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("invalidated_at", BigInteger, nullable=True),
    Column("reason", Text, nullable=False),
    Column("access_count", Integer, nullable=False),
    Column("last_access_at", BigInteger, nullable=True),
    Column("tags_json", Text, nullable=False),
    Column("metadata_json", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_mem_facts_norm_hash", "norm_hash"),
    Index("ix_mem_facts_drawer", "drawer"),
    Index("ix_mem_facts_origin", "origin"),
)
"""``wing`` NULL means that the fact holds everywhere; ``drawer`` is where it was stated."""

mem_sources = Table(
    "mem_sources",
    tables,
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("source_kind", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("weight", Float, nullable=False),
    Column("session", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner_kind", "owner_id", "source_kind", "source_id", "role"),
    Index("ix_mem_sources_source", "source_kind", "source_id"),
    sqlite_with_rowid=False,
)
"""What facts, procedures, hypotheses and reflections rest on; ``role`` is supports or contradicts."""

mem_fact_triples = Table(
    "mem_fact_triples",
    tables,
    Column("fact", Text, nullable=False),
    Column("triple", Text, nullable=False),
    PrimaryKeyConstraint("fact", "triple"),
    Index("ix_mem_fact_triples_triple", "triple"),
    sqlite_with_rowid=False,
)

mem_conditions = Table(
    "mem_conditions",
    tables,
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("expression_json", Text, nullable=False),
    Column("baseline_json", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("last_result", Text, nullable=False),
    Column("last_reason", Text, nullable=False),
    Column("last_checked_at", BigInteger, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner_kind", "owner_id"),
)
"""When something is no longer so. ``last_result`` is met, not_met or unknown, "" before the first check."""

mem_env_snapshots = Table(
    "mem_env_snapshots",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("snapshot_json", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("captured_at", BigInteger, nullable=False),
    Index("ix_mem_env_snapshots_scope", "scope", "captured_at"),
)

mem_procedures = Table(
    "mem_procedures",
    tables,
    Column("id", Text, primary_key=True),
    Column("content", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("task_type", Text, nullable=False),
    Column("weight", Float, nullable=False),
    Column("successes", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("variant_of", Text, nullable=True),
    Column("preference", Text, nullable=True),
    Column("origin", Text, nullable=False),
    Column("unsupported", Boolean, nullable=False),
    Column("drawer", Text, nullable=True),
    Column("wing", Text, nullable=True),
    Column("norm_hash", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("invalidated_at", BigInteger, nullable=True),
    Column("reason", Text, nullable=False),
    Column("last_triggered_at", BigInteger, nullable=True),
    Column("last_outcome_at", BigInteger, nullable=True),
    Column("access_count", Integer, nullable=False),
    Column("last_access_at", BigInteger, nullable=True),
    Column("tags_json", Text, nullable=False),
    Column("metadata_json", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_mem_procedures_norm_hash", "norm_hash"),
    Index("ix_mem_procedures_drawer", "drawer"),
)

mem_procedure_outcomes = Table(
    "mem_procedure_outcomes",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("procedure", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_mem_procedure_outcomes_procedure", "procedure"),
)

mem_edges = Table(
    "mem_edges",
    tables,
    Column("source_kind", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    Column("target_kind", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Column("relation", Text, nullable=False),
    Column("weight", Float, nullable=False),
    Column("origin", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_traversed_at", BigInteger, nullable=True),
    PrimaryKeyConstraint("source_kind", "source_id", "target_kind", "target_id", "relation"),
    Index("ix_mem_edges_target", "target_kind", "target_id"),
    sqlite_with_rowid=False,
)

mem_reflections = Table(
    "mem_reflections",
    tables,
    Column("id", Text, primary_key=True),
    Column("task", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("dimensions_json", Text, nullable=False),
    Column("analysis_json", Text, nullable=False),
    Column("proposals_json", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("unsupported", Boolean, nullable=False),
    Column("wing", Text, nullable=True),
    Column("applied_at", BigInteger, nullable=True),
    Column("created_at", BigInteger, nullable=False),
)

mem_hypotheses = Table(
    "mem_hypotheses",
    tables,
    Column("id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("rationale", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("status", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("wing", Text, nullable=True),
    Column("push_count", Integer, nullable=False),
    Column("ignore_count", Integer, nullable=False),
    Column("stability_count", Integer, nullable=False),
    Column("cycles_json", Text, nullable=False),
    Column("seeds_json", Text, nullable=False),
    Column("nodes_json", Text, nullable=False),
    Column("pair_json", Text, nullable=False),
    Column("topics_json", Text, nullable=False),
    Column("fact", Text, nullable=True),
    Column("metadata_json", Text, nullable=False),
    Column("last_pushed_at", BigInteger, nullable=True),
    Column("expires_at", BigInteger, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_mem_hypotheses_status", "status"),
)
"""``status`` is pending, confirmed, rejected or promoted; ``cycles_json`` the cycles that came to it."""

mem_preferences = Table(
    "mem_preferences",
    tables,
    Column("id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("polarity", Integer, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("signal_strength", Float, nullable=False),
    Column("status", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("drawer", Text, nullable=True),
    Column("wing", Text, nullable=True),
    Column("norm_hash", Text, nullable=False),
    Column("fact", Text, nullable=True),
    Column("procedure", Text, nullable=True),
    Column("conflicts_json", Text, nullable=False),
    Column("push_count", Integer, nullable=False),
    Column("ignore_count", Integer, nullable=False),
    Column("last_pushed_at", BigInteger, nullable=True),
    Column("decayed_at", BigInteger, nullable=True),
    Column("metadata_json", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_mem_preferences_status", "status"),
    Index("ix_mem_preferences_norm_hash", "norm_hash"),
)
"""One row is one preference; ``fact`` is what it was promoted to, ``polarity`` 1 for, -1 against."""

mem_preference_evidence = Table(
    "mem_preference_evidence",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("preference", Text, nullable=False),
    Column("drawer", Text, nullable=True),
    Column("session", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("polarity", Integer, nullable=False),
    Column("strength", Float, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_mem_preference_evidence_preference", "preference", "drawer"),
)

mem_ingest_queue = Table(
    "mem_ingest_queue",
    tables,
    Column("event", Text, primary_key=True),
    Column("session", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("drawer", Text, nullable=True),
    Column("at", BigInteger, nullable=False),
    Index("ix_mem_ingest_queue_state", "state"),
)
"""Events that wait for their transcript; ``state`` is pending, linked, filed or failed."""

mem_llm_usage = Table(
    "mem_llm_usage",
    tables,
    Column("day", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    PrimaryKeyConstraint("day", "purpose"),
)

mem_leases = Table(
    "mem_leases",
    tables,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
"""Which process does a piece of background work, and until when nobody else does."""

mem_cycles = Table(
    "mem_cycles",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("job", Text, nullable=False),
    Column("wing", Text, nullable=True),
    Column("episodes", Integer, nullable=False),
    Column("result_json", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger, nullable=True),
    Index("ix_mem_cycles_job", "job"),
)
"""One row for each run of consolidation, replay, reflection or extraction of preferences."""

mem_recalls = Table(
    "mem_recalls",
    tables,
    Column("rid", Integer, primary_key=True),
    Column("session", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("found_json", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_mem_recalls_session", "session"),
)
"""What was recalled lately, so that a gap can be told from something that was not looked for."""

mem_tombstones = Table(
    "mem_tombstones",
    tables,
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "id"),
)

mem_aliases = Table(
    "mem_aliases",
    tables,
    Column("alias", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Index("ix_mem_aliases_id", "kind", "id"),
)
"""Ids under which things were known before they were imported."""

mem_texts = Table(
    "mem_texts",
    tables,
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("length", Integer, nullable=False),
    PrimaryKeyConstraint("kind", "id"),
    sqlite_with_rowid=False,
)
"""The text under which a thing is found: its hash, and how many terms it has."""

mem_terms = Table(
    "mem_terms",
    tables,
    Column("term", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("count", Integer, nullable=False),
    PrimaryKeyConstraint("term", "kind", "id"),
    Index("ix_mem_terms_id", "kind", "id"),
    sqlite_with_rowid=False,
)

mem_vectors = Table(
    "mem_vectors",
    tables,
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("embedder", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("kind", "id", "embedder"),
    sqlite_with_rowid=False,
)
"""float16 vectors of what is in ``mem_texts``; one whose hash differs from there is out of date."""

MIND = tuple(sorted(name for name in tables.tables if name.startswith("mem_")))
"""The names of all tables of the mind."""
