-- needs 1
-- Groups of accounts, and rules for which scopes people may have at an MCP server.

CREATE TABLE account_groups (
    name        TEXT COLLATE "C" PRIMARY KEY,
    description TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL
);

CREATE TABLE group_members (
    group_name TEXT COLLATE "C" NOT NULL REFERENCES account_groups (name) ON DELETE CASCADE,
    user_id    TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    added_at   BIGINT NOT NULL,
    PRIMARY KEY (group_name, user_id)
);
CREATE INDEX group_members_user ON group_members (user_id);

CREATE TABLE access_rules (
    resource   TEXT COLLATE "C" NOT NULL,
    subject    TEXT COLLATE "C" NOT NULL,     -- user:ID, group:NAME or everyone
    user_id    TEXT COLLATE "C" REFERENCES users (id) ON DELETE CASCADE,
    group_name TEXT COLLATE "C" REFERENCES account_groups (name),
    scopes     TEXT COLLATE "C" NOT NULL,     -- JSON
    all_scopes BIGINT NOT NULL,               -- 1: every scope of the resource
    set_at     BIGINT NOT NULL,
    PRIMARY KEY (resource, subject)
);
CREATE INDEX access_rules_user ON access_rules (user_id);
CREATE INDEX access_rules_group ON access_rules (group_name);
