-- needs 10
-- Authorization requests that clients have pushed (RFC 9126). The first browser that opens one is the
-- only one that can.

CREATE TABLE pushed_requests (
    reference_hash BYTEA PRIMARY KEY,
    client_id      TEXT COLLATE "C" NOT NULL,
    sealed         BYTEA NOT NULL,         -- the parameters
    expires_at     BIGINT NOT NULL,
    browser_hash   BYTEA                   -- that has opened it; NULL: it was not opened
);
CREATE INDEX pushed_requests_expires ON pushed_requests (expires_at);
