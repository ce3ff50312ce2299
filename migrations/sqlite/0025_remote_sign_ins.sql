-- needs 13
-- Requests of browsers to be signed in by a person on another device. What a person approves is
-- collected once, by the browser that asked, while the session that approved lives.

CREATE TABLE remote_sign_ins (
    secret_hash  BLOB PRIMARY KEY,
    code_hash    BLOB NOT NULL UNIQUE,
    agent        TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_at   INTEGER,
    session_hash BLOB,                     -- of the person who approved; NULL: not approved
    collected_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX remote_sign_ins_expires ON remote_sign_ins (expires_at);
