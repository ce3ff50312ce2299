-- needs 13
-- Authorization requests that clients have pushed (RFC 9126). The first browser that opens one is the
-- only one that can.

CREATE TABLE pushed_requests (
    reference_hash BLOB PRIMARY KEY,
    client_id      TEXT NOT NULL,
    sealed         BLOB NOT NULL,         -- the parameters
    expires_at     INTEGER NOT NULL,
    browser_hash   BLOB                   -- that has opened it; NULL: it was not opened
) STRICT, WITHOUT ROWID;
CREATE INDEX pushed_requests_expires ON pushed_requests (expires_at);
