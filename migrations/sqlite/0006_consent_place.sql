-- needs 1
-- A consent is for the place that the answer goes to, and for the client as it was shown.
-- Consents from before, and those of a replica of the version before, have neither.

CREATE TABLE consents_placed (
    user_id    TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    resource   TEXT NOT NULL,
    scope      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    place      TEXT NOT NULL DEFAULT '',
    material   BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (user_id, client_id, resource, place, scope)
) STRICT, WITHOUT ROWID;
INSERT INTO consents_placed (user_id, client_id, resource, scope, created_at)
    SELECT user_id, client_id, resource, scope, created_at FROM consents;
DROP TABLE consents;
ALTER TABLE consents_placed RENAME TO consents;
CREATE INDEX consents_client ON consents (client_id);
CREATE INDEX consents_resource ON consents (resource);
