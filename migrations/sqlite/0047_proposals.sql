-- needs 1
-- Operations of the administration that wait for a second administrator.

CREATE TABLE proposals (
    id             TEXT PRIMARY KEY,
    operation      TEXT NOT NULL,
    input          BLOB NOT NULL,             -- sealed
    thing          TEXT NOT NULL,             -- digest of what it is about; '': about nothing yet
    by_user        TEXT NOT NULL,
    by_name        TEXT NOT NULL,
    by_client      TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    state          TEXT NOT NULL,             -- open, accepted, declined
    decided_user   TEXT NOT NULL,
    decided_name   TEXT NOT NULL,
    decided_client TEXT NOT NULL,
    decided_at     INTEGER NOT NULL               -- 0: it is open
) STRICT, WITHOUT ROWID;
