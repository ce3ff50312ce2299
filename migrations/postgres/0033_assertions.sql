-- needs 1
-- Grants that were made by assertions of issuers that the operator trusts, what these issuers call
-- people, and the ends of all grants that rest on a trust entry. They have a table of their own: what
-- an earlier version finds in cuts and cannot tell apart, it would take for the end of every grant.

ALTER TABLE grants ADD COLUMN trust_id TEXT;
ALTER TABLE grants ADD COLUMN asserted TEXT;

CREATE TABLE trust_links (
    issuer     TEXT COLLATE "C" NOT NULL,
    tenant     TEXT COLLATE "C" NOT NULL, -- '': none
    kind       TEXT COLLATE "C" NOT NULL, -- 'subject', 'saml' or 'account'
    subject    TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    made_by    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, tenant, kind, subject)
);
CREATE INDEX trust_links_user ON trust_links (user_id);

CREATE TABLE trust_cuts (
    id         TEXT COLLATE "C" PRIMARY KEY,
    trust_id   TEXT COLLATE "C" NOT NULL,
    revoked_by TEXT NOT NULL,
    at         BIGINT NOT NULL,
    upto       BIGINT NOT NULL, -- the last status_index that it cuts
    phase      INTEGER NOT NULL,
    place      BIGINT NOT NULL, -- the last status_index that was looked at in this phase
    grants     BIGINT NOT NULL  -- how many it has marked
);
