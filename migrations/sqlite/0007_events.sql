-- needs 1
-- Who or what ended a grant, and what commands did, for the log of a server.

ALTER TABLE grants ADD COLUMN revoked_by TEXT;

CREATE TABLE events (
    id       TEXT PRIMARY KEY,
    at       INTEGER NOT NULL,
    name     TEXT NOT NULL,
    fields   TEXT NOT NULL,
    taken_at INTEGER                       -- when a server took it to log it
) STRICT;
CREATE INDEX events_at ON events (at);
CREATE INDEX events_waiting ON events (at) WHERE taken_at IS NULL;
