-- needs 1
-- Accounts and sessions at upstream identity providers, and what rests on them.

ALTER TABLE sessions ADD COLUMN upstream_id TEXT;
CREATE INDEX sessions_upstream ON sessions (upstream_id) WHERE upstream_id IS NOT NULL;
ALTER TABLE grants ADD COLUMN upstream_id TEXT;
CREATE INDEX grants_upstream ON grants (upstream_id) WHERE upstream_id IS NOT NULL;

CREATE TABLE identities (
    connector    TEXT NOT NULL,
    subject      TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    label        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (connector, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_user ON identities (user_id);

CREATE TABLE upstreams (
    id            TEXT PRIMARY KEY,
    connector     TEXT NOT NULL,
    subject       TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    session_id    TEXT,    -- the provider's name for it
    linked        INTEGER NOT NULL,
    sealed        BLOB,                    -- NULL once it has ended
    scopes        TEXT NOT NULL,
    version       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    checked_at    INTEGER,
    due_at        INTEGER,
    claimed_until INTEGER,
    ended_at      INTEGER,
    end_reason    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX upstreams_user ON upstreams (user_id, connector);
CREATE INDEX upstreams_subject ON upstreams (connector, subject);
CREATE INDEX upstreams_session ON upstreams (connector, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX upstreams_due ON upstreams (due_at) WHERE ended_at IS NULL;
CREATE INDEX upstreams_ended ON upstreams (ended_at) WHERE ended_at IS NOT NULL;

-- Browsers on their way to a provider and back.
CREATE TABLE departures (
    key        BLOB PRIMARY KEY,
    sealed     BLOB,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX departures_expires ON departures (expires_at);

-- What to tell a browser whose session the provider has ended.
CREATE TABLE farewells (
    hash       BLOB PRIMARY KEY,
    connector  TEXT NOT NULL,
    reason     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX farewells_expires ON farewells (expires_at);
