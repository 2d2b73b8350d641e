"""The statements that bring the tables of the mind into a ledger that was made without them."""

from __future__ import annotations

MIND_TABLES = (
    """CREATE TABLE IF NOT EXISTS mem_aliases (
        alias TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (alias)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_aliases_id ON mem_aliases (kind, id)",
    """CREATE TABLE IF NOT EXISTS mem_conditions (
        owner_kind TEXT NOT NULL, owner_id TEXT NOT NULL, expression_json TEXT NOT NULL,
        baseline_json TEXT NOT NULL, scope TEXT NOT NULL, last_result TEXT NOT NULL, last_reason
        TEXT NOT NULL, last_checked_at BIGINT, created_at BIGINT NOT NULL, PRIMARY KEY (owner_kind,
        owner_id)
    )""",
    """CREATE TABLE IF NOT EXISTS mem_cycles (
        rid INTEGER NOT NULL, job TEXT NOT NULL, wing TEXT, episodes INTEGER NOT NULL, result_json
        TEXT NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, PRIMARY KEY (rid)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_cycles_job ON mem_cycles (job)",
    """CREATE TABLE IF NOT EXISTS mem_edges (
        source_kind TEXT NOT NULL, source_id TEXT NOT NULL, target_kind TEXT NOT NULL, target_id
        TEXT NOT NULL, relation TEXT NOT NULL, weight FLOAT NOT NULL, origin TEXT NOT NULL,
        created_at BIGINT NOT NULL, last_traversed_at BIGINT, PRIMARY KEY (source_kind, source_id,
        target_kind, target_id, relation)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS ix_mem_edges_target ON mem_edges (target_kind, target_id)",
    """CREATE TABLE IF NOT EXISTS mem_env_snapshots (
        rid INTEGER NOT NULL, scope TEXT NOT NULL, snapshot_json TEXT NOT NULL, sha256 TEXT NOT
        NULL, captured_at BIGINT NOT NULL, PRIMARY KEY (rid)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_env_snapshots_scope ON mem_env_snapshots (scope, captured_at)",
    """CREATE TABLE IF NOT EXISTS mem_fact_triples (
        fact TEXT NOT NULL, triple TEXT NOT NULL, PRIMARY KEY (fact, triple)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS ix_mem_fact_triples_triple ON mem_fact_triples (triple)",
    """CREATE TABLE IF NOT EXISTS mem_facts (
        id TEXT NOT NULL, statement TEXT NOT NULL, confidence FLOAT NOT NULL, origin TEXT NOT NULL,
        unsupported BOOLEAN NOT NULL, drawer TEXT, wing TEXT, norm_hash TEXT NOT NULL, state TEXT
        NOT NULL, pinned BOOLEAN NOT NULL, invalidated_at BIGINT, reason TEXT NOT NULL, access_count
        INTEGER NOT NULL, last_access_at BIGINT, tags_json TEXT NOT NULL, metadata_json TEXT NOT
        NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_facts_drawer ON mem_facts (drawer)",
    "CREATE INDEX IF NOT EXISTS ix_mem_facts_norm_hash ON mem_facts (norm_hash)",
    "CREATE INDEX IF NOT EXISTS ix_mem_facts_origin ON mem_facts (origin)",
    """CREATE TABLE IF NOT EXISTS mem_history (
        rid INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, what TEXT NOT NULL, old TEXT NOT
        NULL, new TEXT NOT NULL, reason TEXT NOT NULL, actor TEXT NOT NULL, evidence_json TEXT NOT
        NULL, at BIGINT NOT NULL, PRIMARY KEY (rid)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_history_object ON mem_history (kind, id)",
    """CREATE TABLE IF NOT EXISTS mem_hypotheses (
        id TEXT NOT NULL, text TEXT NOT NULL, rationale TEXT NOT NULL, confidence FLOAT NOT NULL,
        status TEXT NOT NULL, origin TEXT NOT NULL, wing TEXT, push_count INTEGER NOT NULL,
        ignore_count INTEGER NOT NULL, stability_count INTEGER NOT NULL, cycles_json TEXT NOT NULL,
        seeds_json TEXT NOT NULL, nodes_json TEXT NOT NULL, pair_json TEXT NOT NULL, topics_json
        TEXT NOT NULL, fact TEXT, metadata_json TEXT NOT NULL, last_pushed_at BIGINT, expires_at
        BIGINT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_hypotheses_status ON mem_hypotheses (status)",
    """CREATE TABLE IF NOT EXISTS mem_ingest_queue (
        event TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, text
        TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT NOT NULL, drawer
        TEXT, at BIGINT NOT NULL, PRIMARY KEY (event)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_ingest_queue_state ON mem_ingest_queue (state)",
    """CREATE TABLE IF NOT EXISTS mem_leases (
        name TEXT NOT NULL, holder TEXT NOT NULL, expires_at BIGINT NOT NULL, PRIMARY KEY (name)
    )""",
    """CREATE TABLE IF NOT EXISTS mem_llm_usage (
        day TEXT NOT NULL, purpose TEXT NOT NULL, calls INTEGER NOT NULL, failures INTEGER NOT NULL,
        tokens BIGINT NOT NULL, PRIMARY KEY (day, purpose)
    )""",
    """CREATE TABLE IF NOT EXISTS mem_meta (
        "key" TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY ("key")
    )""",
    """CREATE TABLE IF NOT EXISTS mem_preference_evidence (
        rid INTEGER NOT NULL, preference TEXT NOT NULL, drawer TEXT, session TEXT NOT NULL, source
        TEXT NOT NULL, polarity INTEGER NOT NULL, strength FLOAT NOT NULL, at BIGINT NOT NULL,
        PRIMARY KEY (rid)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_preference_evidence_preference "
    "ON mem_preference_evidence (preference, drawer)",
    """CREATE TABLE IF NOT EXISTS mem_preferences (
        id TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL, polarity INTEGER NOT NULL,
        confidence FLOAT NOT NULL, signal_strength FLOAT NOT NULL, status TEXT NOT NULL, "trigger"
        TEXT NOT NULL, origin TEXT NOT NULL, drawer TEXT, wing TEXT, norm_hash TEXT NOT NULL, fact
        TEXT, procedure TEXT, conflicts_json TEXT NOT NULL, push_count INTEGER NOT NULL,
        ignore_count INTEGER NOT NULL, last_pushed_at BIGINT, decayed_at BIGINT, metadata_json TEXT
        NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_preferences_norm_hash ON mem_preferences (norm_hash)",
    "CREATE INDEX IF NOT EXISTS ix_mem_preferences_status ON mem_preferences (status)",
    """CREATE TABLE IF NOT EXISTS mem_procedure_outcomes (
        rid INTEGER NOT NULL, procedure TEXT NOT NULL, session TEXT NOT NULL, success BOOLEAN NOT
        NULL, note TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (rid)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_procedure_outcomes_procedure ON mem_procedure_outcomes (procedure)",
    """CREATE TABLE IF NOT EXISTS mem_procedures (
        id TEXT NOT NULL, content TEXT NOT NULL, "trigger" TEXT NOT NULL, task_type TEXT NOT NULL,
        weight FLOAT NOT NULL, successes INTEGER NOT NULL, failures INTEGER NOT NULL, variant_of
        TEXT, preference TEXT, origin TEXT NOT NULL, unsupported BOOLEAN NOT NULL, drawer TEXT, wing
        TEXT, norm_hash TEXT NOT NULL, state TEXT NOT NULL, pinned BOOLEAN NOT NULL, invalidated_at
        BIGINT, reason TEXT NOT NULL, last_triggered_at BIGINT, last_outcome_at BIGINT, access_count
        INTEGER NOT NULL, last_access_at BIGINT, tags_json TEXT NOT NULL, metadata_json TEXT NOT
        NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_procedures_drawer ON mem_procedures (drawer)",
    "CREATE INDEX IF NOT EXISTS ix_mem_procedures_norm_hash ON mem_procedures (norm_hash)",
    """CREATE TABLE IF NOT EXISTS mem_recalls (
        rid INTEGER NOT NULL, session TEXT NOT NULL, "query" TEXT NOT NULL, found_json TEXT NOT
        NULL, at BIGINT NOT NULL, PRIMARY KEY (rid)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_recalls_session ON mem_recalls (session)",
    """CREATE TABLE IF NOT EXISTS mem_reflections (
        id TEXT NOT NULL, task TEXT NOT NULL, outcome TEXT NOT NULL, text TEXT NOT NULL,
        dimensions_json TEXT NOT NULL, analysis_json TEXT NOT NULL, proposals_json TEXT NOT NULL,
        origin TEXT NOT NULL, unsupported BOOLEAN NOT NULL, wing TEXT, applied_at BIGINT, created_at
        BIGINT NOT NULL, PRIMARY KEY (id)
    )""",
    """CREATE TABLE IF NOT EXISTS mem_sessions (
        id TEXT NOT NULL, platform TEXT NOT NULL, wing TEXT NOT NULL, cwd TEXT NOT NULL, transcript
        TEXT NOT NULL, offsets_json TEXT NOT NULL, started_at BIGINT NOT NULL, ended_at BIGINT,
        PRIMARY KEY (id)
    )""",
    """CREATE TABLE IF NOT EXISTS mem_sources (
        owner_kind TEXT NOT NULL, owner_id TEXT NOT NULL, source_kind TEXT NOT NULL, source_id TEXT
        NOT NULL, role TEXT NOT NULL, weight FLOAT NOT NULL, session TEXT NOT NULL, at BIGINT NOT
        NULL, PRIMARY KEY (owner_kind, owner_id, source_kind, source_id, role)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS ix_mem_sources_source ON mem_sources (source_kind, source_id)",
    """CREATE TABLE IF NOT EXISTS mem_terms (
        term TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY
        KEY (term, kind, id)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS ix_mem_terms_id ON mem_terms (kind, id)",
    """CREATE TABLE IF NOT EXISTS mem_texts (
        kind TEXT NOT NULL, id TEXT NOT NULL, sha256 BLOB NOT NULL, length INTEGER NOT NULL, PRIMARY
        KEY (kind, id)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS mem_tombstones (
        kind TEXT NOT NULL, id TEXT NOT NULL, sha256 TEXT NOT NULL, reason TEXT NOT NULL, actor TEXT
        NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (kind, id)
    )""",
    """CREATE TABLE IF NOT EXISTS mem_vectors (
        kind TEXT NOT NULL, id TEXT NOT NULL, embedder TEXT NOT NULL, sha256 BLOB NOT NULL, vector
        BLOB NOT NULL, PRIMARY KEY (kind, id, embedder)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS mem_working (
        id TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, wing TEXT NOT NULL, content
        TEXT NOT NULL, base_priority FLOAT NOT NULL, relevance FLOAT NOT NULL, last_accessed_at
        BIGINT NOT NULL, was_referenced BOOLEAN NOT NULL, task_completed BOOLEAN NOT NULL,
        hypothesis TEXT, tags_json TEXT NOT NULL, metadata_json TEXT NOT NULL, created_at BIGINT NOT
        NULL, PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_working_session ON mem_working (session)",
    """CREATE TABLE IF NOT EXISTS mem_episodes (
        drawer INTEGER NOT NULL, session TEXT NOT NULL, task TEXT NOT NULL, origin TEXT NOT NULL,
        valence FLOAT NOT NULL, valence_confidence FLOAT NOT NULL, valence_source TEXT NOT NULL,
        outcome_valence FLOAT, score FLOAT, low_cycles INTEGER NOT NULL, state TEXT NOT NULL,
        was_in_wm BOOLEAN NOT NULL, invalidated_at BIGINT, reason TEXT NOT NULL, access_count
        INTEGER NOT NULL, last_access_at BIGINT, tags_json TEXT NOT NULL, metadata_json TEXT NOT
        NULL, projection BLOB, projection_spec TEXT NOT NULL, created_at BIGINT NOT NULL, PRIMARY
        KEY (drawer), FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE
    )""",
    "CREATE INDEX IF NOT EXISTS ix_mem_episodes_session ON mem_episodes (session)",
    "CREATE INDEX IF NOT EXISTS ix_mem_episodes_state ON mem_episodes (state)",
)
"""Written out, as those of every migration are, because the tables go on changing."""
