-- needs 1
-- What clients have handed to helpers: the nodes of the tree below each grant. The place in the status
-- lists follows from seq, which is never given twice. Above holds the ids of the nodes above, each
-- followed by a space, the one below the grant first.

CREATE TABLE nodes (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT COLLATE "C" NOT NULL UNIQUE,
    grant_id   TEXT COLLATE "C" NOT NULL,
    parent_id  TEXT COLLATE "C" NOT NULL,
    above      TEXT COLLATE "C" NOT NULL,
    depth      BIGINT NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    scopes     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    cut_at     BIGINT
);
CREATE INDEX nodes_by_grant ON nodes (grant_id);
CREATE INDEX nodes_ends ON nodes (expires_at);
