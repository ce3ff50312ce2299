-- needs 1
-- The language that a person chose for pages and letters.

ALTER TABLE users ADD COLUMN locale TEXT NOT NULL DEFAULT '';
