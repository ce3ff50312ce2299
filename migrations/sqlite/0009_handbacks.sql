-- needs 1
-- Tokens of providers whose sessions here are over, until a server has given them back.

CREATE TABLE handbacks (
    id         TEXT PRIMARY KEY, -- of the session at the provider that they are of
    connector  TEXT NOT NULL,
    subject    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX handbacks_expires ON handbacks (expires_at);
