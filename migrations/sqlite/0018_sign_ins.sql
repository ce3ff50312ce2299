-- needs 10
-- What a person is shown of a sign-in: how they proved who they are, and when they last did, and the
-- browser and the network that it began in. NULL: begun under an earlier schema, or by a
-- replica of the version before.

ALTER TABLE sessions ADD COLUMN methods TEXT;     -- RFC 8176 names, a list
ALTER TABLE sessions ADD COLUMN proved_at INTEGER;
ALTER TABLE sessions ADD COLUMN agent TEXT;
ALTER TABLE sessions ADD COLUMN address TEXT;
ALTER TABLE sessions ADD COLUMN seen_at INTEGER;   -- to the hour
