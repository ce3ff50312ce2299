-- needs 1
-- Groups at identity providers whose people are in a group of accounts. An earlier server does not count them.

CREATE TABLE provider_groups (
    group_name TEXT NOT NULL REFERENCES account_groups (name) ON DELETE CASCADE,
    connector  TEXT NOT NULL,
    name       TEXT NOT NULL, -- at the provider
    added_at   INTEGER NOT NULL,
    PRIMARY KEY (group_name, connector, name)
) STRICT, WITHOUT ROWID;
