-- needs 10
-- Ways in beside passwords and accounts at providers: passkeys, authenticator apps, recovery
-- codes.

CREATE TABLE ways (
    id            TEXT COLLATE "C" PRIMARY KEY,
    user_id       TEXT COLLATE "C" NOT NULL,
    kind          TEXT COLLATE "C" NOT NULL, -- passkey, app
    name          TEXT NOT NULL,
    rp_id         TEXT COLLATE "C" NOT NULL, -- '' for an app
    credential_id BYTEA,                     -- NULL for an app
    data          BYTEA NOT NULL,            -- a passkey's public credential; an app's secret, sealed
    counter       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT
);
CREATE INDEX ways_user ON ways (user_id);
CREATE UNIQUE INDEX ways_credential ON ways (credential_id) WHERE credential_id IS NOT NULL;

CREATE TABLE recovery_codes (
    user_id TEXT COLLATE "C" NOT NULL,
    hash    BYTEA NOT NULL,
    used_at BIGINT,
    PRIMARY KEY (user_id, hash)
);
