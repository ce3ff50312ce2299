-- needs 1
-- Requests of the API for which their callers have chosen a key (Idempotency-Key): what came under a key
-- once is not carried out again.

CREATE TABLE keyed_requests (
    key_hash    BYTEA PRIMARY KEY,        -- of the caller and their key
    caller_hash BYTEA NOT NULL,
    digest      BYTEA NOT NULL,           -- of the input
    until       BIGINT NOT NULL,         -- it has ended by then, one way or the other
    expires_at  BIGINT NOT NULL,
    sealed      BYTEA                     -- the answer; NULL: there is none
);
CREATE INDEX keyed_requests_expires ON keyed_requests (expires_at);
CREATE INDEX keyed_requests_caller ON keyed_requests (caller_hash, expires_at);
