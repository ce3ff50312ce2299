-- needs 1
-- What happened to accounts, until their people have seen it; and where people get mail.

ALTER TABLE users ADD COLUMN mail TEXT NOT NULL DEFAULT '';

CREATE TABLE notices (
    id      TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    kind    TEXT NOT NULL,
    detail  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    seen_at INTEGER
) STRICT;
CREATE INDEX notices_user ON notices (user_id, at);
CREATE INDEX notices_at ON notices (at);
CREATE INDEX notices_seen ON notices (seen_at) WHERE seen_at IS NOT NULL;
