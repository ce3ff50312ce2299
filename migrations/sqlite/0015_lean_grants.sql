-- needs 13
-- Grants without the indexes that the step grant_keys has replaced, or that no verb needs: of
-- all codes, of resources. An index that belongs to a table cannot be dropped, so this is
-- another table. A code of an earlier version, which names no grant, is found while it is
-- not used.

CREATE TABLE lean_grants (
    id                 TEXT PRIMARY KEY,
    client_id          TEXT NOT NULL,
    user_id            TEXT NOT NULL,
    resource           TEXT NOT NULL,
    scopes             TEXT NOT NULL,
    auth_time          INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL,
    revoked_at         INTEGER,
    code_hash          BLOB NOT NULL,          -- once it is used: a digest with its challenge
    code_redirect      TEXT NOT NULL,          -- '' once it is used
    code_challenge     TEXT NOT NULL,          -- '' once it is used
    code_expires_at    INTEGER NOT NULL,
    code_used_at       INTEGER,
    sweep_at           INTEGER NOT NULL,
    status_index       INTEGER,
    upstream_id        TEXT,
    revoked_by         TEXT,
    refresh_hash       BLOB,
    generation         INTEGER NOT NULL DEFAULT 0,
    rotated_at         INTEGER,
    refresh_expires_at INTEGER,
    rotations          BLOB
) STRICT;
INSERT INTO lean_grants SELECT id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, revoked_at,
    code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index, upstream_id, revoked_by,
    refresh_hash, generation, rotated_at, refresh_expires_at, rotations FROM grants ORDER BY status_index;
DROP TABLE grants;
ALTER TABLE lean_grants RENAME TO grants;
CREATE UNIQUE INDEX grants_status ON grants (status_index);
CREATE INDEX grants_revoked ON grants (status_index) WHERE revoked_at IS NOT NULL;
CREATE INDEX grants_upstream ON grants (upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX grants_sweep ON grants (sweep_at);
CREATE INDEX grants_by_client ON grants (substr(client_id, 9, 4) || substr(client_id, -8), substr(id, 1, 11));
CREATE INDEX grants_by_pair ON grants (substr(user_id, -8), substr(client_id, 9, 4) || substr(client_id, -8));
CREATE INDEX grants_code ON grants (code_hash) WHERE code_used_at IS NULL;
