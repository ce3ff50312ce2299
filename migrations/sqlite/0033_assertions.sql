-- needs 13
-- Grants that were made by assertions of issuers that the operator trusts, what these issuers call
-- people, and the ends of all grants that rest on a trust entry. They have a table of their own: what
-- an earlier version finds in cuts and cannot tell apart, it would take for the end of every grant.

ALTER TABLE grants ADD COLUMN trust_id TEXT;
ALTER TABLE grants ADD COLUMN asserted TEXT;

CREATE TABLE trust_links (
    issuer     TEXT NOT NULL,
    tenant     TEXT NOT NULL, -- '': none
    kind       TEXT NOT NULL, -- 'subject', 'saml' or 'account'
    subject    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    made_by    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, tenant, kind, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX trust_links_user ON trust_links (user_id);

CREATE TABLE trust_cuts (
    id         TEXT PRIMARY KEY,
    trust_id   TEXT NOT NULL,
    revoked_by TEXT NOT NULL,
    at         INTEGER NOT NULL,
    upto       INTEGER NOT NULL, -- the last status_index that it cuts
    phase      INTEGER NOT NULL,
    place      INTEGER NOT NULL, -- the last status_index that was looked at in this phase
    grants     INTEGER NOT NULL  -- how many it has marked
) STRICT;
