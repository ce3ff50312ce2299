-- needs 1
-- The servers that have this database, as they tell of themselves.

CREATE TABLE replicas (
    id            TEXT COLLATE "C" PRIMARY KEY,          -- of the process
    name          TEXT COLLATE "C" NOT NULL,
    version       TEXT COLLATE "C" NOT NULL,
    migration     BIGINT NOT NULL,          -- the last step that its program knows
    issuer        TEXT COLLATE "C" NOT NULL,
    address       TEXT COLLATE "C" NOT NULL,
    started_at    BIGINT NOT NULL,
    seen_at       BIGINT NOT NULL,
    skew          BIGINT NOT NULL,          -- milliseconds by which this database's clock is ahead of its own
    audit_waiting BIGINT NOT NULL,
    audit_lost    BIGINT NOT NULL
);
