-- needs 1
-- Pauses of applications. They outlive the grants that were paused.

CREATE TABLE pauses (
    id          TEXT COLLATE "C" PRIMARY KEY,  -- digest of the person, the application and the resource
    user_id     TEXT COLLATE "C" NOT NULL,
    application TEXT COLLATE "C" NOT NULL,
    resource    TEXT COLLATE "C" NOT NULL,
    client_id   TEXT COLLATE "C" NOT NULL,     -- the client that was paused
    client_name TEXT COLLATE "C" NOT NULL,
    paused_at   BIGINT,                        -- NULL: not paused, see expires_at
    expires_at  BIGINT                         -- until when the row is kept by which approvals and a pause wait for each other
);
CREATE INDEX pauses_user ON pauses (user_id, paused_at);
CREATE INDEX pauses_expires ON pauses (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE clearances ADD COLUMN application TEXT COLLATE "C" NOT NULL DEFAULT '';
