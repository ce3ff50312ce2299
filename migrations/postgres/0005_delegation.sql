-- needs 1
-- Accounts and sessions at upstream identity providers, and what rests on them.

ALTER TABLE sessions ADD COLUMN upstream_id TEXT COLLATE "C";
CREATE INDEX sessions_upstream ON sessions (upstream_id) WHERE upstream_id IS NOT NULL;
ALTER TABLE grants ADD COLUMN upstream_id TEXT COLLATE "C";
CREATE INDEX grants_upstream ON grants (upstream_id) WHERE upstream_id IS NOT NULL;

CREATE TABLE identities (
    connector    TEXT COLLATE "C" NOT NULL,
    subject      TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    label        TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (connector, subject)
);
CREATE INDEX identities_user ON identities (user_id);

CREATE TABLE upstreams (
    id            TEXT COLLATE "C" PRIMARY KEY,
    connector     TEXT COLLATE "C" NOT NULL,
    subject       TEXT COLLATE "C" NOT NULL,
    user_id       TEXT COLLATE "C" NOT NULL,
    session_id    TEXT COLLATE "C",    -- the provider's name for it
    linked        BOOLEAN NOT NULL,
    sealed        BYTEA,                    -- NULL once it has ended
    scopes        TEXT NOT NULL,
    version       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    checked_at    BIGINT,
    due_at        BIGINT,
    claimed_until BIGINT,
    ended_at      BIGINT,
    end_reason    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX upstreams_user ON upstreams (user_id, connector);
CREATE INDEX upstreams_subject ON upstreams (connector, subject);
CREATE INDEX upstreams_session ON upstreams (connector, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX upstreams_due ON upstreams (due_at) WHERE ended_at IS NULL;
CREATE INDEX upstreams_ended ON upstreams (ended_at) WHERE ended_at IS NOT NULL;

-- Browsers on their way to a provider and back.
CREATE TABLE departures (
    key        BYTEA PRIMARY KEY,
    sealed     BYTEA,
    expires_at BIGINT NOT NULL
);
CREATE INDEX departures_expires ON departures (expires_at);

-- What to tell a browser whose session the provider has ended.
CREATE TABLE farewells (
    hash       BYTEA PRIMARY KEY,
    connector  TEXT NOT NULL,
    reason     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX farewells_expires ON farewells (expires_at);
