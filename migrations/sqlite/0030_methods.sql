-- needs 1
-- How the person proved who they are in the session in which they approved: a JSON list, as sessions
-- have it. Empty for grants of an earlier version, of which it is not known.

ALTER TABLE grants ADD COLUMN methods TEXT;
