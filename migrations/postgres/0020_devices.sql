-- needs 10
-- Requests of devices without a browser (RFC 8628). What a person approves is a grant whose code
-- is the device code.

CREATE TABLE devices (
    code_hash      BYTEA PRIMARY KEY,
    user_code_hash BYTEA NOT NULL UNIQUE,
    client_id      TEXT COLLATE "C" NOT NULL,
    resource       TEXT COLLATE "C" NOT NULL,
    scopes         TEXT NOT NULL,
    agent          TEXT NOT NULL,
    address        TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    interval_ms    BIGINT NOT NULL,        -- between two polls
    polled_at      BIGINT,
    early          BOOLEAN NOT NULL,       -- the last poll came too early
    decided_at     BIGINT,
    grant_id       TEXT COLLATE "C"        -- NULL: not approved
);
CREATE INDEX devices_expires ON devices (expires_at);
