-- needs 1
-- How MCP servers behind the gateway describe their tools, and which of that was accepted.

CREATE TABLE tools (
    resource      TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C" NOT NULL,
    accepted      BYTEA,                        -- digest; NULL: no definition was
    accepted_text TEXT COLLATE "C" NOT NULL DEFAULT '',
    accepted_at   BIGINT NOT NULL DEFAULT 0,
    accepted_by   TEXT COLLATE "C" NOT NULL DEFAULT '',   -- '': it was the first to be seen
    offered       BYTEA,                        -- digest of what was seen since and is not accepted
    offered_text  TEXT COLLATE "C" NOT NULL DEFAULT '',
    offered_at    BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (resource, name)
);
