-- needs 1
-- Groups of accounts, and rules for which scopes people may have at an MCP server.

CREATE TABLE account_groups (
    name        TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE group_members (
    group_name TEXT NOT NULL REFERENCES account_groups (name) ON DELETE CASCADE,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    added_at   INTEGER NOT NULL,
    PRIMARY KEY (group_name, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_members_user ON group_members (user_id);

CREATE TABLE access_rules (
    resource   TEXT NOT NULL,
    subject    TEXT NOT NULL,     -- user:ID, group:NAME or everyone
    user_id    TEXT REFERENCES users (id) ON DELETE CASCADE,
    group_name TEXT REFERENCES account_groups (name),
    scopes     TEXT NOT NULL,     -- JSON
    all_scopes INTEGER NOT NULL,  -- 1: every scope of the resource
    set_at     INTEGER NOT NULL,
    PRIMARY KEY (resource, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_rules_user ON access_rules (user_id);
CREATE INDEX access_rules_group ON access_rules (group_name);
