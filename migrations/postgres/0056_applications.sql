-- needs 1
-- Applications as operators see them. A row of a hold or a cut decides for all clients of an application.

ALTER TABLE clients ADD COLUMN application TEXT COLLATE "C"; -- the key by which the client is filed; NULL: not filed yet
CREATE INDEX clients_application ON clients (application, id) WHERE application IS NOT NULL;
CREATE INDEX clients_unfiled ON clients (id) WHERE application IS NULL AND deleted_at IS NULL;

CREATE TABLE application_holds (
    application TEXT COLLATE "C" PRIMARY KEY,
    name        TEXT NOT NULL,
    blocked     BIGINT NOT NULL, -- 0: paused
    held_by     TEXT COLLATE "C" NOT NULL,
    at          BIGINT NOT NULL
);

CREATE TABLE application_aliases (
    application TEXT COLLATE "C" PRIMARY KEY, -- the key that clients of it have by themselves
    counts_as   TEXT COLLATE "C" NOT NULL,    -- the key by which they are filed
    at          BIGINT NOT NULL
);

CREATE TABLE application_cuts (
    id          TEXT COLLATE "C" PRIMARY KEY,
    application TEXT COLLATE "C" NOT NULL,
    revoked_by  TEXT COLLATE "C" NOT NULL,
    at          BIGINT NOT NULL,
    upto        BIGINT NOT NULL, -- the last status_index that it cuts
    phase       INTEGER NOT NULL,
    place       BIGINT NOT NULL, -- the last status_index that was looked at in this phase
    grants      BIGINT NOT NULL  -- how many it has marked
);
