-- needs 1
-- Tools whose calls an access rule makes people approve. An earlier server does not ask for it.

ALTER TABLE access_rules ADD COLUMN approve TEXT NOT NULL DEFAULT '[]'; -- JSON
