-- needs 1
-- What all replicas need to serve certificates that one of them has obtained by ACME.

CREATE TABLE certificate_files (
    key         TEXT PRIMARY KEY,
    sealed      BLOB NOT NULL,
    modified_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
