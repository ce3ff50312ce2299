-- needs 1
-- Tokens of providers whose sessions here are over, until a server has given them back.

CREATE TABLE handbacks (
    id         TEXT COLLATE "C" PRIMARY KEY, -- of the session at the provider that they are of
    connector  TEXT COLLATE "C" NOT NULL,
    subject    TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    sealed     BYTEA NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX handbacks_expires ON handbacks (expires_at);
