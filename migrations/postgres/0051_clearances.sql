-- needs 1
-- Clearances: the words of people for single tool calls, and the wait for them.

CREATE TABLE clearances (
    binding    BYTEA PRIMARY KEY,             -- digest of all that it is for
    id         TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,     -- '': the call of a machine
    client_id  TEXT COLLATE "C" NOT NULL,
    grant_id   TEXT COLLATE "C" NOT NULL,     -- '': client credentials
    node_id    TEXT COLLATE "C" NOT NULL,
    resource   TEXT COLLATE "C" NOT NULL,
    tool       TEXT COLLATE "C" NOT NULL,
    digest     BYTEA NOT NULL,                -- of the arguments
    by_whom    TEXT COLLATE "C" NOT NULL,
    approvers  TEXT COLLATE "C" NOT NULL,
    acr        TEXT COLLATE "C" NOT NULL,
    max_age    BIGINT NOT NULL,
    sealed     BYTEA NOT NULL,                -- the arguments
    state      TEXT COLLATE "C" NOT NULL,
    giver_id   TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX clearances_id ON clearances (id);
CREATE INDEX clearances_grant ON clearances (grant_id, client_id);
CREATE INDEX clearances_user ON clearances (user_id);
CREATE INDEX clearances_expires ON clearances (expires_at);
