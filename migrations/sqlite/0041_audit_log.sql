-- needs 1
-- The audit as a list that only grows, with the hashes of its Merkle tree and what its key has signed.

CREATE TABLE audit_entries (
    idx      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    event    TEXT NOT NULL,
    grant_id TEXT,                         -- NULL: about none
    person   TEXT,                         -- id; NULL: about none
    leaf     TEXT NOT NULL                 -- canonical JSON, which is hashed
) STRICT;
CREATE INDEX audit_entries_grant ON audit_entries (grant_id, idx) WHERE grant_id IS NOT NULL;
CREATE INDEX audit_entries_person ON audit_entries (person, idx) WHERE person IS NOT NULL;

-- How far the log goes: one row, of the name 'log', which the first entries make.
CREATE TABLE audit_head (
    name      TEXT PRIMARY KEY,
    size      INTEGER NOT NULL,
    first_idx INTEGER NOT NULL             -- the entries below it were removed
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_tiles (
    level  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    hashes BLOB NOT NULL,                  -- up to 256, of 32 bytes
    PRIMARY KEY (level, number)
) STRICT;

-- How many entries of each writer are in the log, so that none is appended twice.
CREATE TABLE audit_writers (
    id   TEXT PRIMARY KEY,
    mark INTEGER NOT NULL,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_writers_at ON audit_writers (at);

CREATE TABLE audit_checkpoints (
    size   INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    signed TEXT NOT NULL
) STRICT;
