-- needs 1
-- Groups at identity providers whose people are in a group of accounts. An earlier server does not count them.

CREATE TABLE provider_groups (
    group_name TEXT COLLATE "C" NOT NULL REFERENCES account_groups (name) ON DELETE CASCADE,
    connector  TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL, -- at the provider
    added_at   BIGINT NOT NULL,
    PRIMARY KEY (group_name, connector, name)
);
