-- needs 1
-- Who or what ended a grant, and what commands did, for the log of a server.

ALTER TABLE grants ADD COLUMN revoked_by text;

CREATE TABLE events (
    id       text PRIMARY KEY,
    at       bigint NOT NULL,
    name     text NOT NULL,
    fields   text NOT NULL,
    taken_at bigint                        -- when a server took it to log it
);
CREATE INDEX events_at ON events (at);
CREATE INDEX events_waiting ON events (at) WHERE taken_at IS NULL;
