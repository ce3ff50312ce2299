-- needs 13
-- Keys that people make for programs: the grant of each is marked, and listed by its person.

ALTER TABLE grants ADD COLUMN for_program INTEGER NOT NULL DEFAULT 0;
CREATE INDEX grants_for_programs ON grants (user_id) WHERE for_program;
