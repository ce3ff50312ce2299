-- needs 1
-- What was cut as a whole, until each of its grants is marked as revoked. A replica of the
-- version before goes by the marks alone, which follow within seconds.

CREATE TABLE cuts (
    id         TEXT COLLATE "C" PRIMARY KEY,
    user_id    TEXT COLLATE "C" NOT NULL, -- the grants of whom; '': of all
    client_id  TEXT COLLATE "C" NOT NULL, -- to which client; '': to all
    resource   TEXT COLLATE "C" NOT NULL, -- for which resource; '': for all
    connector  TEXT COLLATE "C" NOT NULL, -- resting on sessions at which provider; '': on any or none
    revoked_by TEXT NOT NULL,
    at         BIGINT NOT NULL,
    upto       BIGINT NOT NULL,           -- the last status_index that it cuts
    phase      INTEGER NOT NULL,
    place      BIGINT NOT NULL,           -- the last status_index that was looked at in this phase
    reached    TEXT COLLATE "C" NOT NULL, -- the last session at a provider that was
    grants     BIGINT NOT NULL            -- how many it has marked
);
