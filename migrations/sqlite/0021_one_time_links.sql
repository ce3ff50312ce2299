-- needs 1
-- Links by which a person makes an account or gets back into one. A link that was used or stopped
-- has no row.

CREATE TABLE one_time_links (
    hash       BLOB PRIMARY KEY, -- of the token
    stop_hash  BLOB,             -- of the token that stops it
    kind       TEXT NOT NULL,    -- invite, recover, reset
    user_id    TEXT NOT NULL,    -- '' of an invitation
    name       TEXT NOT NULL,    -- of the account to be made
    name_key   TEXT NOT NULL,
    admin      INTEGER NOT NULL,
    mail       TEXT NOT NULL,
    browser    BLOB,             -- hash of the browser that it is for; NULL: any
    not_before INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_time_links_stop ON one_time_links (stop_hash) WHERE stop_hash IS NOT NULL;
CREATE INDEX one_time_links_user ON one_time_links (user_id, name_key, kind);
CREATE INDEX one_time_links_expires ON one_time_links (expires_at);
