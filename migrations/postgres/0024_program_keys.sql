-- needs 10
-- concurrently
-- Keys that people make for programs: the grant of each is marked, and listed by its person. No
-- use of a key changes what the index covers.

ALTER TABLE grants ADD COLUMN IF NOT EXISTS for_program BOOLEAN NOT NULL DEFAULT false;
DROP INDEX CONCURRENTLY IF EXISTS grants_for_programs;
CREATE INDEX CONCURRENTLY grants_for_programs ON grants (user_id) WHERE for_program;
