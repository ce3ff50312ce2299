-- needs 1
-- Operations of the administration that wait for a second administrator.

CREATE TABLE proposals (
    id             TEXT COLLATE "C" PRIMARY KEY,
    operation      TEXT COLLATE "C" NOT NULL,
    input          BYTEA NOT NULL,             -- sealed
    thing          TEXT COLLATE "C" NOT NULL,             -- digest of what it is about; '': about nothing yet
    by_user        TEXT COLLATE "C" NOT NULL,
    by_name        TEXT COLLATE "C" NOT NULL,
    by_client      TEXT COLLATE "C" NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    state          TEXT COLLATE "C" NOT NULL,             -- open, accepted, declined
    decided_user   TEXT COLLATE "C" NOT NULL,
    decided_name   TEXT COLLATE "C" NOT NULL,
    decided_client TEXT COLLATE "C" NOT NULL,
    decided_at     BIGINT NOT NULL               -- 0: it is open
);
