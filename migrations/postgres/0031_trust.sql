-- needs 1
-- The issuers whose assertions are believed, with their rules as JSON. A row without a kind marks
-- an entry of the configuration as disabled.

CREATE TABLE trust_entries (
    id          TEXT COLLATE "C" PRIMARY KEY,
    kind        TEXT COLLATE "C" NOT NULL,
    issuer      TEXT COLLATE "C" NOT NULL,
    rules       TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    disabled_at BIGINT
);
