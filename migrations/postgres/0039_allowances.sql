-- needs 10
-- Limits on requests that replicas share: when each is whole again. One that is whole needs no row.

CREATE TABLE allowances (
    key     BYTEA PRIMARY KEY,
    full_at BIGINT NOT NULL,
    span    BIGINT NOT NULL
);
CREATE INDEX allowances_whole ON allowances (full_at);
