-- needs 1
-- Calls of tools whose results are fetched later, and whom tasks of MCP servers behind the gateway belong to.

CREATE TABLE tasks (
    id         BYTEA PRIMARY KEY,             -- digest of MCP server, owner and name
    owner      BYTEA NOT NULL,                -- digest of MCP server, person, application and grant
    person     BYTEA NOT NULL,                -- digest of MCP server and person
    name       TEXT COLLATE "C" NOT NULL,     -- by which the owner finds it
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    version    BIGINT NOT NULL,               -- how often it was changed
    sealed     BYTEA NOT NULL
);
CREATE INDEX tasks_owner ON tasks (owner, created_at);
CREATE INDEX tasks_person ON tasks (person, expires_at);
CREATE INDEX tasks_expires ON tasks (expires_at);
