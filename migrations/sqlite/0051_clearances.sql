-- needs 1
-- Clearances: the words of people for single tool calls, and the wait for them.

CREATE TABLE clearances (
    binding    BLOB PRIMARY KEY,             -- digest of all that it is for
    id         TEXT NOT NULL,
    user_id    TEXT NOT NULL,     -- '': the call of a machine
    client_id  TEXT NOT NULL,
    grant_id   TEXT NOT NULL,     -- '': client credentials
    node_id    TEXT NOT NULL,
    resource   TEXT NOT NULL,
    tool       TEXT NOT NULL,
    digest     BLOB NOT NULL,                -- of the arguments
    by_whom    TEXT NOT NULL,
    approvers  TEXT NOT NULL,
    acr        TEXT NOT NULL,
    max_age    INTEGER NOT NULL,
    sealed     BLOB NOT NULL,                -- the arguments
    state      TEXT NOT NULL,
    giver_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX clearances_id ON clearances (id);
CREATE INDEX clearances_grant ON clearances (grant_id, client_id);
CREATE INDEX clearances_user ON clearances (user_id);
CREATE INDEX clearances_expires ON clearances (expires_at);
