-- needs 1
-- When issuers that are trusted said that what a person had is over: what they asserted before counts
-- no more. It is kept for as long as such an assertion may still be valid.

CREATE TABLE asserted_ends (
    issuer     TEXT COLLATE "C" NOT NULL,
    subject    TEXT COLLATE "C" NOT NULL,
    at         BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX asserted_ends_expires ON asserted_ends (expires_at);
