-- needs 1
-- The place of each grant in the status lists. An explicit number, because a rowid may
-- change when the file is compacted.

ALTER TABLE grants ADD COLUMN status_index INTEGER;
UPDATE grants SET status_index = rowid;
CREATE UNIQUE INDEX grants_status ON grants (status_index);
CREATE INDEX grants_revoked ON grants (status_index) WHERE revoked_at IS NOT NULL;
