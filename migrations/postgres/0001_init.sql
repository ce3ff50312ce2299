-- The first schema. Times are whole milliseconds since 1970 UTC, NULL: never.
-- Hashes are SHA-256 digests. Lists are JSON text.
-- There are no foreign keys: parent and child are written by one verb in one
-- transaction, and a check on every insert would only cost.
-- Keys collate by byte ("C"): an operating system that changes its collation tables
-- must not break an index.

CREATE TABLE clients (
    id            TEXT COLLATE "C" PRIMARY KEY,
    secret_hash   BYTEA,
    name          TEXT NOT NULL DEFAULT '',
    redirect_uris TEXT NOT NULL DEFAULT '[]',
    grant_types   TEXT NOT NULL DEFAULT '[]',
    auth_method   TEXT NOT NULL DEFAULT '',
    scopes        TEXT NOT NULL DEFAULT '[]',
    resources     TEXT NOT NULL DEFAULT '[]',
    source        TEXT NOT NULL DEFAULT '',
    metadata      BYTEA,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT,
    deleted_at    BIGINT                  -- a tombstone: the id is never reused
);

CREATE TABLE users (
    id            TEXT COLLATE "C" PRIMARY KEY,
    name          TEXT NOT NULL,
    name_key      TEXT COLLATE "C" NOT NULL UNIQUE,    -- the name without regard to case
    password_hash TEXT NOT NULL,
    admin         BOOLEAN NOT NULL,
    disabled      BOOLEAN NOT NULL,
    created_at    BIGINT NOT NULL,
    last_login_at BIGINT
);

CREATE TABLE sessions (
    hash       BYTEA PRIMARY KEY,
    user_id    TEXT COLLATE "C" NOT NULL,
    auth_time  BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expires ON sessions (expires_at);

-- One row for each scope, so that a union of two concurrent approvals is two
-- inserts and no read. The empty scope marks a consent that may have no scope.
CREATE TABLE consents (
    user_id    TEXT COLLATE "C" NOT NULL,
    client_id  TEXT COLLATE "C" NOT NULL,
    resource   TEXT COLLATE "C" NOT NULL,
    scope      TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, client_id, resource, scope)
);
CREATE INDEX consents_client ON consents (client_id);
CREATE INDEX consents_resource ON consents (resource);

-- A grant has exactly one code, so the code lives in its row.
CREATE TABLE grants (
    id              TEXT COLLATE "C" PRIMARY KEY,
    client_id       TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    resource        TEXT COLLATE "C" NOT NULL,
    scopes          TEXT NOT NULL,
    auth_time       BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    revoked_at      BIGINT,
    code_hash       BYTEA NOT NULL UNIQUE,
    code_redirect   TEXT NOT NULL,
    code_challenge  TEXT NOT NULL,
    code_expires_at BIGINT NOT NULL,
    code_used_at    BIGINT,
    sweep_at        BIGINT NOT NULL       -- from then on the row cannot matter any more
);
CREATE INDEX grants_user ON grants (user_id, id);
CREATE INDEX grants_client ON grants (client_id, id);
CREATE INDEX grants_resource ON grants (resource);
CREATE INDEX grants_sweep ON grants (sweep_at);

CREATE TABLE refresh_tokens (
    hash       BYTEA PRIMARY KEY,
    grant_id   TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    rotated_at BIGINT,
    sealed     BYTEA                        -- the successor, for replies within the grace
);
CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id);
CREATE INDEX refresh_tokens_sealed ON refresh_tokens (rotated_at) WHERE sealed IS NOT NULL;

CREATE TABLE denied_tokens (
    id         TEXT COLLATE "C" PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX denied_tokens_expires ON denied_tokens (expires_at);

CREATE TABLE resources (
    uri        TEXT COLLATE "C" PRIMARY KEY,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE signing_keys (
    id         TEXT COLLATE "C" PRIMARY KEY,
    algorithm  TEXT COLLATE "C" NOT NULL,
    state      TEXT NOT NULL,
    public     BYTEA NOT NULL,
    private    BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    retired_at BIGINT,
    expires_at BIGINT
);
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (algorithm) WHERE state = 'active';

CREATE TABLE spent (
    purpose    TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (purpose, id)
);
CREATE INDEX spent_expires ON spent (expires_at);

CREATE TABLE failures (
    key        BYTEA PRIMARY KEY,
    count      INTEGER NOT NULL,
    first_at   BIGINT NOT NULL,
    last_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX failures_expires ON failures (expires_at);

-- Single facts: the setup token, the fingerprint of the secret key.
CREATE TABLE settings (
    name       TEXT COLLATE "C" PRIMARY KEY,
    value      BYTEA,
    expires_at BIGINT
);
