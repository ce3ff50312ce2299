-- needs 1
-- The last tool call of each grant, as far as the gateway has let one through, for the person who
-- gave the grant. It goes with the grant, or at the end that the grant had, if a replica of an
-- earlier version removes that.

CREATE TABLE last_calls (
    grant_id   TEXT COLLATE "C" PRIMARY KEY,
    tool       TEXT COLLATE "C" NOT NULL,
    called_at  BIGINT NOT NULL,
    kept_until BIGINT NOT NULL
);
CREATE INDEX last_calls_kept ON last_calls (kept_until);
