CREATE TABLE meta (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);

CREATE TABLE lineage (
    seq BIGINT NOT NULL,
    token TEXT NOT NULL,
    PRIMARY KEY (seq)
);

CREATE TABLE projects (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE wing_names (
    old TEXT NOT NULL,
    new TEXT NOT NULL,
    PRIMARY KEY (old)
);

CREATE TABLE vectors (
    embedder TEXT NOT NULL,
    input BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, input)
)
 WITHOUT ROWID;

CREATE TABLE entities (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE blobs (
    sha256 BLOB NOT NULL,
    size BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (sha256)
);

CREATE TABLE readings (
    address TEXT NOT NULL,
    format TEXT NOT NULL,
    signature TEXT NOT NULL,
    "offset" BIGINT NOT NULL,
    edge BLOB NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (address)
);

CREATE TABLE project_aliases (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    project TEXT NOT NULL,
    PRIMARY KEY (kind, value),
    FOREIGN KEY(project) REFERENCES projects (id)
);

CREATE TABLE sources (
    id INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    kind TEXT NOT NULL,
    project TEXT,
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    wing TEXT NOT NULL,
    room TEXT NOT NULL,
    revision INTEGER NOT NULL,
    signature TEXT NOT NULL,
    gone_at BIGINT,
    forgotten_at BIGINT,
    PRIMARY KEY (id),
    UNIQUE ("key"),
    FOREIGN KEY(project) REFERENCES projects (id)
);

CREATE INDEX ix_sources_project ON sources (project);

CREATE INDEX ix_sources_wing ON sources (wing);

CREATE TABLE entity_aliases (
    alias TEXT NOT NULL,
    name TEXT NOT NULL,
    entity TEXT NOT NULL,
    PRIMARY KEY (alias),
    FOREIGN KEY(entity) REFERENCES entities (id)
);

CREATE INDEX ix_entity_aliases_entity ON entity_aliases (entity);

CREATE TABLE triples (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    valid_from BIGINT,
    valid_to BIGINT,
    valid_from_text TEXT,
    valid_to_text TEXT,
    created_at BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    recorded_by TEXT NOT NULL,
    ended_at BIGINT,
    ended_by TEXT,
    PRIMARY KEY (rid),
    FOREIGN KEY(subject) REFERENCES entities (id),
    FOREIGN KEY(object) REFERENCES entities (id)
);

CREATE INDEX ix_triples_predicate ON triples (predicate);

CREATE INDEX ix_triples_validity ON triples (valid_from, valid_to);

CREATE INDEX ix_triples_id ON triples (id);

CREATE INDEX ix_triples_subject ON triples (subject, predicate, object);

CREATE INDEX ix_triples_object ON triples (object);

CREATE TABLE registry (
    entity TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    confidence FLOAT NOT NULL,
    ambiguous BOOLEAN NOT NULL,
    added_at BIGINT NOT NULL,
    added_by TEXT NOT NULL,
    forgotten_at BIGINT,
    PRIMARY KEY (entity),
    FOREIGN KEY(entity) REFERENCES entities (id)
);

CREATE TABLE revisions (
    source INTEGER NOT NULL,
    number INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    size BIGINT NOT NULL,
    signature TEXT NOT NULL,
    normalizer TEXT NOT NULL,
    encoding TEXT NOT NULL,
    authored_at BIGINT NOT NULL,
    filed_at BIGINT NOT NULL,
    added_by TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (source, number),
    FOREIGN KEY(source) REFERENCES sources (id)
);

CREATE TABLE drawers (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq BIGINT,
    source INTEGER NOT NULL,
    wing TEXT NOT NULL,
    room TEXT NOT NULL,
    hall TEXT NOT NULL,
    kind TEXT NOT NULL,
    role TEXT NOT NULL,
    speaker TEXT NOT NULL,
    message_id TEXT NOT NULL,
    text TEXT NOT NULL,
    raw BLOB,
    sha256 BLOB NOT NULL,
    sealed TEXT,
    detector_version INTEGER NOT NULL,
    context TEXT NOT NULL,
    authored_at BIGINT NOT NULL,
    filed_at BIGINT NOT NULL,
    ended_at BIGINT,
    added_by TEXT NOT NULL,
    state TEXT NOT NULL,
    metadata TEXT,
    PRIMARY KEY (rid),
    UNIQUE (id),
    UNIQUE (seq),
    FOREIGN KEY(source) REFERENCES sources (id)
);

CREATE INDEX ix_drawers_place ON drawers (state, wing, room);

CREATE INDEX ix_drawers_source ON drawers (source);

CREATE INDEX ix_drawers_sha256 ON drawers (sha256);

CREATE TABLE closets (
    source INTEGER NOT NULL,
    generation TEXT NOT NULL,
    builder TEXT NOT NULL,
    built_at BIGINT NOT NULL,
    PRIMARY KEY (source),
    FOREIGN KEY(source) REFERENCES sources (id)
);

CREATE TABLE name_backlog (
    entity TEXT NOT NULL,
    done INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    PRIMARY KEY (entity),
    FOREIGN KEY(entity) REFERENCES registry (entity)
);

CREATE TABLE sessions (
    source INTEGER NOT NULL,
    session TEXT NOT NULL,
    format TEXT NOT NULL,
    title TEXT NOT NULL,
    cwd TEXT NOT NULL,
    git_branch TEXT NOT NULL,
    parent TEXT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    metadata TEXT,
    PRIMARY KEY (source),
    FOREIGN KEY(source) REFERENCES sources (id)
);

CREATE INDEX ix_sessions_session ON sessions (session);

CREATE TABLE messages (
    source INTEGER NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    whole TEXT NOT NULL,
    parent TEXT NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    speaker TEXT NOT NULL,
    tool TEXT NOT NULL,
    thread TEXT NOT NULL,
    said_at BIGINT,
    shown BOOLEAN NOT NULL,
    current BOOLEAN NOT NULL,
    sha256 BLOB NOT NULL,
    size BIGINT NOT NULL,
    metadata TEXT,
    PRIMARY KEY (source, id, version),
    FOREIGN KEY(source) REFERENCES sources (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_messages_position ON messages (source, position);

CREATE INDEX ix_messages_whole ON messages (whole);

CREATE INDEX ix_messages_id ON messages (id);

CREATE TABLE attachments (
    source INTEGER NOT NULL,
    message TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    ref TEXT NOT NULL,
    blob BLOB,
    PRIMARY KEY (source, message, ordinal),
    FOREIGN KEY(source) REFERENCES sources (id),
    FOREIGN KEY(blob) REFERENCES blobs (sha256)
);

CREATE TABLE membership (
    source INTEGER NOT NULL,
    from_revision INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    to_revision INTEGER,
    drawer INTEGER NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    PRIMARY KEY (source, from_revision, ordinal),
    UNIQUE (drawer, from_revision),
    FOREIGN KEY(source) REFERENCES sources (id),
    FOREIGN KEY(drawer) REFERENCES drawers (rid)
)
 WITHOUT ROWID;

CREATE TABLE tombstones (
    drawer INTEGER NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    cause TEXT NOT NULL,
    PRIMARY KEY (drawer),
    FOREIGN KEY(drawer) REFERENCES drawers (rid)
);

CREATE TABLE closet_lines (
    id INTEGER NOT NULL,
    source INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(source) REFERENCES closets (source) ON DELETE CASCADE
);

CREATE INDEX ix_closet_lines_source ON closet_lines (source, ordinal);

CREATE TABLE aaak (
    drawer INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    builder TEXT NOT NULL,
    line TEXT NOT NULL,
    original_tokens INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (drawer),
    FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE
);

CREATE TABLE evidence (
    rid INTEGER NOT NULL,
    triple TEXT NOT NULL,
    drawer INTEGER,
    source TEXT NOT NULL,
    adapter TEXT NOT NULL,
    actor TEXT NOT NULL,
    confidence FLOAT NOT NULL,
    valid_from_text TEXT,
    valid_to_text TEXT,
    recorded_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL,
    PRIMARY KEY (rid),
    FOREIGN KEY(drawer) REFERENCES drawers (rid)
);

CREATE INDEX ix_evidence_triple ON evidence (triple);

CREATE INDEX ix_evidence_drawer ON evidence (drawer);

CREATE TABLE mentions (
    entity TEXT NOT NULL,
    drawer INTEGER NOT NULL,
    PRIMARY KEY (entity, drawer),
    FOREIGN KEY(entity) REFERENCES registry (entity),
    FOREIGN KEY(drawer) REFERENCES drawers (rid)
)
 WITHOUT ROWID;

CREATE INDEX ix_mentions_drawer ON mentions (drawer);

CREATE TABLE novelty (
    drawer INTEGER NOT NULL,
    input BLOB NOT NULL,
    score FLOAT,
    nearest INTEGER,
    PRIMARY KEY (drawer),
    FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE,
    FOREIGN KEY(nearest) REFERENCES drawers (rid) ON DELETE SET NULL
);

CREATE INDEX ix_novelty_waiting ON novelty (drawer) WHERE score IS NULL;

CREATE INDEX ix_novelty_nearest ON novelty (nearest);

CREATE TABLE tunnels (
    rid INTEGER NOT NULL,
    id TEXT NOT NULL,
    source_wing TEXT NOT NULL,
    source_room TEXT NOT NULL,
    source_drawer INTEGER,
    target_wing TEXT NOT NULL,
    target_room TEXT NOT NULL,
    target_drawer INTEGER,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    recorded_by TEXT NOT NULL,
    ended_at BIGINT,
    ended_by TEXT,
    PRIMARY KEY (rid),
    FOREIGN KEY(source_drawer) REFERENCES drawers (rid),
    FOREIGN KEY(target_drawer) REFERENCES drawers (rid)
);

CREATE INDEX ix_tunnels_id ON tunnels (id);

CREATE TABLE closet_drawers (
    line INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    drawer INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (line, ordinal),
    FOREIGN KEY(line) REFERENCES closet_lines (id) ON DELETE CASCADE,
    FOREIGN KEY(drawer) REFERENCES drawers (rid) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_closet_drawers_drawer ON closet_drawers (drawer);
