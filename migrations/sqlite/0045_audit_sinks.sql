-- needs 1
-- How far each sink has the audit log: next_idx is the first entry that it does not have.

CREATE TABLE audit_sinks (
    name     TEXT PRIMARY KEY,
    next_idx INTEGER NOT NULL,
    lost     INTEGER NOT NULL,             -- entries that it will never have
    failed   TEXT NOT NULL,                -- why the last delivery did; '': it did not
    at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
