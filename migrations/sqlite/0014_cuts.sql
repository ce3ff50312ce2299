-- needs 1
-- What was cut as a whole, until each of its grants is marked as revoked. A process of the
-- version before goes by the marks alone, which follow within seconds.

CREATE TABLE cuts (
    id         TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL,    -- the grants of whom; '': of all
    client_id  TEXT NOT NULL,    -- to which client; '': to all
    resource   TEXT NOT NULL,    -- for which resource; '': for all
    connector  TEXT NOT NULL,    -- resting on sessions at which provider; '': on any or none
    revoked_by TEXT NOT NULL,
    at         INTEGER NOT NULL,
    upto       INTEGER NOT NULL, -- the last status_index that it cuts
    phase      INTEGER NOT NULL,
    place      INTEGER NOT NULL, -- the last status_index that was looked at in this phase
    reached    TEXT NOT NULL,    -- the last session at a provider that was
    grants     INTEGER NOT NULL  -- how many it has marked
) STRICT;
