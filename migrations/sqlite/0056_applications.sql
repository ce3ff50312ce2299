-- needs 1
-- Applications as operators see them. A row of a hold or a cut decides for all clients of an application.

ALTER TABLE clients ADD COLUMN application TEXT; -- the key by which the client is filed; NULL: not filed yet
CREATE INDEX clients_application ON clients (application, id) WHERE application IS NOT NULL;
CREATE INDEX clients_unfiled ON clients (id) WHERE application IS NULL AND deleted_at IS NULL;

CREATE TABLE application_holds (
    application TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    blocked     INTEGER NOT NULL, -- 0: paused
    held_by     TEXT NOT NULL,
    at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE application_aliases (
    application TEXT PRIMARY KEY, -- the key that clients of it have by themselves
    counts_as   TEXT NOT NULL,    -- the key by which they are filed
    at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE application_cuts (
    id          TEXT PRIMARY KEY,
    application TEXT NOT NULL,
    revoked_by  TEXT NOT NULL,
    at          INTEGER NOT NULL,
    upto        INTEGER NOT NULL, -- the last status_index that it cuts
    phase       INTEGER NOT NULL,
    place       INTEGER NOT NULL, -- the last status_index that was looked at in this phase
    grants      INTEGER NOT NULL  -- how many it has marked
) STRICT;
