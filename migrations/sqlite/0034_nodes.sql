-- needs 1
-- What clients have handed to helpers: the nodes of the tree below each grant. The place in the status
-- lists follows from seq, which is never given twice. Above holds the ids of the nodes above, each
-- followed by a space, the one below the grant first.

CREATE TABLE nodes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    grant_id   TEXT NOT NULL,
    parent_id  TEXT NOT NULL,
    above      TEXT NOT NULL,
    depth      INTEGER NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    cut_at     INTEGER
) STRICT;
CREATE INDEX nodes_by_grant ON nodes (grant_id);
CREATE INDEX nodes_ends ON nodes (expires_at);
