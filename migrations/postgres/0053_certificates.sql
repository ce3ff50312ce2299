-- needs 1
-- What all replicas need to serve certificates that one of them has obtained by ACME.

CREATE TABLE certificate_files (
    key         TEXT COLLATE "C" PRIMARY KEY,
    sealed      BYTEA NOT NULL,
    modified_at BIGINT NOT NULL
);
