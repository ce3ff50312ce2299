-- needs 1
-- The issuers whose assertions are believed, with their rules as JSON. A row without a kind marks
-- an entry of the configuration as disabled.

CREATE TABLE trust_entries (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    issuer      TEXT NOT NULL,
    rules       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;
