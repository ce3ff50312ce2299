-- needs 1
-- How far each sink has the audit log: next_idx is the first entry that it does not have.

CREATE TABLE audit_sinks (
    name     TEXT COLLATE "C" PRIMARY KEY,
    next_idx BIGINT NOT NULL,
    lost     BIGINT NOT NULL,              -- entries that it will never have
    failed   TEXT COLLATE "C" NOT NULL,    -- why the last delivery did; '': it did not
    at       BIGINT NOT NULL
);
