-- needs 1
-- The servers that have this database, as they tell of themselves.

CREATE TABLE replicas (
    id            TEXT PRIMARY KEY,          -- of the process
    name          TEXT NOT NULL,
    version       TEXT NOT NULL,
    migration     INTEGER NOT NULL,          -- the last step that its program knows
    issuer        TEXT NOT NULL,
    address       TEXT NOT NULL,
    started_at    INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    skew          INTEGER NOT NULL,          -- milliseconds by which this database's clock is ahead of its own
    audit_waiting INTEGER NOT NULL,
    audit_lost    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
