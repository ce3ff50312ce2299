-- needs 1
-- How MCP servers behind the gateway describe their tools, and which of that was accepted.

CREATE TABLE tools (
    resource      TEXT NOT NULL,
    name          TEXT NOT NULL,
    accepted      BLOB,                        -- digest; NULL: no definition was
    accepted_text TEXT NOT NULL DEFAULT '',
    accepted_at   INTEGER NOT NULL DEFAULT 0,
    accepted_by   TEXT NOT NULL DEFAULT '',   -- '': it was the first to be seen
    offered       BLOB,                        -- digest of what was seen since and is not accepted
    offered_text  TEXT NOT NULL DEFAULT '',
    offered_at    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (resource, name)
) STRICT, WITHOUT ROWID;
