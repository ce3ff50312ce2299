-- needs 1
-- The audit as a list that only grows, with the hashes of its Merkle tree and what its key has signed.

CREATE TABLE audit_entries (
    idx      BIGINT PRIMARY KEY,
    at       BIGINT NOT NULL,
    event    TEXT COLLATE "C" NOT NULL,
    grant_id TEXT COLLATE "C",             -- NULL: about none
    person   TEXT COLLATE "C",             -- id; NULL: about none
    leaf     TEXT COLLATE "C" NOT NULL     -- canonical JSON, which is hashed
);
CREATE INDEX audit_entries_grant ON audit_entries (grant_id, idx) WHERE grant_id IS NOT NULL;
CREATE INDEX audit_entries_person ON audit_entries (person, idx) WHERE person IS NOT NULL;

-- How far the log goes: one row, of the name 'log', which the first entries make.
CREATE TABLE audit_head (
    name      TEXT COLLATE "C" PRIMARY KEY,
    size      BIGINT NOT NULL,
    first_idx BIGINT NOT NULL              -- the entries below it were removed
);

CREATE TABLE audit_tiles (
    level  BIGINT NOT NULL,
    number BIGINT NOT NULL,
    hashes BYTEA NOT NULL,                 -- up to 256, of 32 bytes
    PRIMARY KEY (level, number)
);

-- How many entries of each writer are in the log, so that none is appended twice.
CREATE TABLE audit_writers (
    id   TEXT COLLATE "C" PRIMARY KEY,
    mark BIGINT NOT NULL,
    at   BIGINT NOT NULL
);
CREATE INDEX audit_writers_at ON audit_writers (at);

CREATE TABLE audit_checkpoints (
    size   BIGINT PRIMARY KEY,
    at     BIGINT NOT NULL,
    signed TEXT COLLATE "C" NOT NULL
);
