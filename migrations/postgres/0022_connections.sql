-- needs 10
-- concurrently
-- What people see and do of what they have allowed: where it was allowed and used from, a pause,
-- fewer permissions. No index covers what a rotation changes, so that it stays within its page
-- (HOT). The grants of a person are listed by their ids, the newest first.

ALTER TABLE grants ADD COLUMN IF NOT EXISTS given_agent TEXT;
ALTER TABLE grants ADD COLUMN IF NOT EXISTS given_from TEXT;
ALTER TABLE grants ADD COLUMN IF NOT EXISTS used_from TEXT;
ALTER TABLE grants ADD COLUMN IF NOT EXISTS paused_at BIGINT;
ALTER TABLE grants ADD COLUMN IF NOT EXISTS narrowed_at BIGINT;
DROP INDEX CONCURRENTLY IF EXISTS grants_by_person;
CREATE INDEX CONCURRENTLY grants_by_person ON grants (hashtext(user_id), left(id, 11));
DROP INDEX CONCURRENTLY IF EXISTS grants_paused;
CREATE INDEX CONCURRENTLY grants_paused ON grants (status_index) WHERE paused_at IS NOT NULL;
