-- The first schema. Times are whole milliseconds since 1970 UTC, NULL: never.
-- Hashes are SHA-256 digests. Lists are JSON text.
-- There are no foreign keys: parent and child are written by one verb in one
-- transaction, and a check on every insert would only cost.

CREATE TABLE clients (
    id            TEXT PRIMARY KEY,
    secret_hash   BLOB,
    name          TEXT NOT NULL DEFAULT '',
    redirect_uris TEXT NOT NULL DEFAULT '[]',
    grant_types   TEXT NOT NULL DEFAULT '[]',
    auth_method   TEXT NOT NULL DEFAULT '',
    scopes        TEXT NOT NULL DEFAULT '[]',
    resources     TEXT NOT NULL DEFAULT '[]',
    source        TEXT NOT NULL DEFAULT '',
    metadata      BLOB,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    deleted_at    INTEGER                  -- a tombstone: the id is never reused
) STRICT;

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    name_key      TEXT NOT NULL UNIQUE,    -- the name without regard to case
    password_hash TEXT NOT NULL,
    admin         INTEGER NOT NULL,
    disabled      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    last_login_at INTEGER
) STRICT;

CREATE TABLE sessions (
    hash       BLOB PRIMARY KEY,
    user_id    TEXT NOT NULL,
    auth_time  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expires ON sessions (expires_at);

-- One row for each scope, so that a union of two concurrent approvals is two
-- inserts and no read. The empty scope marks a consent that may have no scope.
CREATE TABLE consents (
    user_id    TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    resource   TEXT NOT NULL,
    scope      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, client_id, resource, scope)
) STRICT, WITHOUT ROWID;
CREATE INDEX consents_client ON consents (client_id);
CREATE INDEX consents_resource ON consents (resource);

-- A grant has exactly one code, so the code lives in its row.
CREATE TABLE grants (
    id              TEXT PRIMARY KEY,
    client_id       TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    resource        TEXT NOT NULL,
    scopes          TEXT NOT NULL,
    auth_time       INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER,
    code_hash       BLOB NOT NULL UNIQUE,
    code_redirect   TEXT NOT NULL,
    code_challenge  TEXT NOT NULL,
    code_expires_at INTEGER NOT NULL,
    code_used_at    INTEGER,
    sweep_at        INTEGER NOT NULL       -- from then on the row cannot matter any more
) STRICT;
CREATE INDEX grants_user ON grants (user_id, id);
CREATE INDEX grants_client ON grants (client_id, id);
CREATE INDEX grants_resource ON grants (resource);
CREATE INDEX grants_sweep ON grants (sweep_at);

CREATE TABLE refresh_tokens (
    hash       BLOB PRIMARY KEY,
    grant_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    rotated_at INTEGER,
    sealed     BLOB                        -- the successor, for replies within the grace
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id);
CREATE INDEX refresh_tokens_sealed ON refresh_tokens (rotated_at) WHERE sealed IS NOT NULL;

CREATE TABLE denied_tokens (
    id         TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX denied_tokens_expires ON denied_tokens (expires_at);

CREATE TABLE resources (
    uri        TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE signing_keys (
    id         TEXT PRIMARY KEY,
    algorithm  TEXT NOT NULL,
    state      TEXT NOT NULL,
    public     BLOB NOT NULL,
    private    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER,
    expires_at INTEGER
) STRICT;
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (algorithm) WHERE state = 'active';

CREATE TABLE spent (
    purpose    TEXT NOT NULL,
    id         TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (purpose, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_expires ON spent (expires_at);

CREATE TABLE failures (
    key        BLOB PRIMARY KEY,
    count      INTEGER NOT NULL,
    first_at   INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX failures_expires ON failures (expires_at);

-- Single facts: the setup token, the fingerprint of the secret key.
CREATE TABLE settings (
    name       TEXT PRIMARY KEY,
    value      BLOB,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;
