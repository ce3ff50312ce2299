-- needs 13
-- Limits on requests that replicas share: when each is whole again. One that is whole needs no row.

CREATE TABLE allowances (
    key     BLOB PRIMARY KEY,
    full_at INTEGER NOT NULL,
    span    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX allowances_whole ON allowances (full_at);
