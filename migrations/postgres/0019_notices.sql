-- needs 1
-- What happened to accounts, until their people have seen it; and where people get mail.

ALTER TABLE users ADD COLUMN mail TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE notices (
    id      TEXT COLLATE "C" PRIMARY KEY,
    user_id TEXT COLLATE "C" NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    detail  TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    seen_at BIGINT
);
CREATE INDEX notices_user ON notices (user_id, at);
CREATE INDEX notices_at ON notices (at);
CREATE INDEX notices_seen ON notices (seen_at) WHERE seen_at IS NOT NULL;
