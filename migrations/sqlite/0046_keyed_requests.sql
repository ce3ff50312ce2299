-- needs 1
-- Requests of the API for which their callers have chosen a key (Idempotency-Key): what came under a key
-- once is not carried out again.

CREATE TABLE keyed_requests (
    key_hash    BLOB PRIMARY KEY,        -- of the caller and their key
    caller_hash BLOB NOT NULL,
    digest      BLOB NOT NULL,           -- of the input
    until       INTEGER NOT NULL,        -- it has ended by then, one way or the other
    expires_at  INTEGER NOT NULL,
    sealed      BLOB                     -- the answer; NULL: there is none
) STRICT, WITHOUT ROWID;
CREATE INDEX keyed_requests_expires ON keyed_requests (expires_at);
CREATE INDEX keyed_requests_caller ON keyed_requests (caller_hash, expires_at);
