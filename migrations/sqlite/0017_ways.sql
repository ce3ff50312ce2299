-- needs 10
-- Ways in beside passwords and accounts at providers: passkeys, authenticator apps, recovery
-- codes.

CREATE TABLE ways (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL,
    kind          TEXT NOT NULL,           -- passkey, app
    name          TEXT NOT NULL,
    rp_id         TEXT NOT NULL,           -- '' for an app
    credential_id BLOB,                    -- NULL for an app
    data          BLOB NOT NULL,           -- a passkey's public credential; an app's secret, sealed
    counter       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER
) STRICT;
CREATE INDEX ways_user ON ways (user_id);
CREATE UNIQUE INDEX ways_credential ON ways (credential_id) WHERE credential_id IS NOT NULL;

CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL,
    hash    BLOB NOT NULL,
    used_at INTEGER,
    PRIMARY KEY (user_id, hash)
) STRICT, WITHOUT ROWID;
