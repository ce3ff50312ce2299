-- needs 10
-- Requests of browsers to be signed in by a person on another device. What a person approves is
-- collected once, by the browser that asked, while the session that approved lives.

CREATE TABLE remote_sign_ins (
    secret_hash  BYTEA PRIMARY KEY,
    code_hash    BYTEA NOT NULL UNIQUE,
    agent        TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    decided_at   BIGINT,
    session_hash BYTEA,                    -- of the person who approved; NULL: not approved
    collected_at BIGINT
);
CREATE INDEX remote_sign_ins_expires ON remote_sign_ins (expires_at);
