-- needs 1
-- Calls of tools whose results are fetched later, and whom tasks of MCP servers behind the gateway belong to.

CREATE TABLE tasks (
    id         BLOB NOT NULL PRIMARY KEY,     -- digest of MCP server, owner and name
    owner      BLOB NOT NULL,                 -- digest of MCP server, person, application and grant
    person     BLOB NOT NULL,                 -- digest of MCP server and person
    name       TEXT NOT NULL,                 -- by which the owner finds it
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    version    INTEGER NOT NULL,              -- how often it was changed
    sealed     BLOB NOT NULL
) STRICT;
CREATE INDEX tasks_owner ON tasks (owner, created_at);
CREATE INDEX tasks_person ON tasks (person, expires_at);
CREATE INDEX tasks_expires ON tasks (expires_at);
