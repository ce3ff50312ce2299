-- needs 1
-- A consent is for the place that the answer goes to, and for the client as it was shown.
-- Consents from before, and those of a replica of the version before, have neither.

ALTER TABLE consents ADD COLUMN place TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE consents ADD COLUMN material BYTEA NOT NULL DEFAULT '';
ALTER TABLE consents DROP CONSTRAINT consents_pkey;
ALTER TABLE consents ADD PRIMARY KEY (user_id, client_id, resource, place, scope);
