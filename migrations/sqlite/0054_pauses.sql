-- needs 1
-- Pauses of applications. They outlive the grants that were paused.

CREATE TABLE pauses (
    id          TEXT PRIMARY KEY,  -- digest of the person, the application and the resource
    user_id     TEXT NOT NULL,
    application TEXT NOT NULL,
    resource    TEXT NOT NULL,
    client_id   TEXT NOT NULL,     -- the client that was paused
    client_name TEXT NOT NULL,
    paused_at   INTEGER,           -- NULL: not paused, see expires_at
    expires_at  INTEGER            -- PostgreSQL: until when the row is kept by which approvals and a pause wait for each other
) STRICT, WITHOUT ROWID;
CREATE INDEX pauses_user ON pauses (user_id, paused_at);
CREATE INDEX pauses_expires ON pauses (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE clearances ADD COLUMN application TEXT NOT NULL DEFAULT '';
