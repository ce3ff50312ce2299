-- needs 10
-- Requests of devices without a browser (RFC 8628). What a person approves is a grant whose code
-- is the device code.

CREATE TABLE devices (
    code_hash      BLOB PRIMARY KEY,
    user_code_hash BLOB NOT NULL UNIQUE,
    client_id      TEXT NOT NULL,
    resource       TEXT NOT NULL,
    scopes         TEXT NOT NULL,
    agent          TEXT NOT NULL,
    address        TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    interval_ms    INTEGER NOT NULL,       -- between two polls
    polled_at      INTEGER,
    early          INTEGER NOT NULL,       -- the last poll came too early
    decided_at     INTEGER,
    grant_id       TEXT                    -- NULL: not approved
) STRICT, WITHOUT ROWID;
CREATE INDEX devices_expires ON devices (expires_at);
