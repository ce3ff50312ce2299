-- needs 13
-- What people see and do of what they have allowed: where it was allowed and used from, a pause,
-- fewer permissions. The grants of a person are listed by their ids, the newest first.

ALTER TABLE grants ADD COLUMN given_agent TEXT;
ALTER TABLE grants ADD COLUMN given_from TEXT;
ALTER TABLE grants ADD COLUMN used_from TEXT;
ALTER TABLE grants ADD COLUMN paused_at INTEGER;
ALTER TABLE grants ADD COLUMN narrowed_at INTEGER;
CREATE INDEX grants_by_person ON grants (substr(user_id, -8), substr(id, 1, 11));
CREATE INDEX grants_paused ON grants (status_index) WHERE paused_at IS NOT NULL;
