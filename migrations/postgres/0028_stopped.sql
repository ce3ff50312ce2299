-- needs 1
-- When a person last stopped everything: a sign-in that had begun by then begins no session. It is
-- empty for a person who never did, and not set by replicas of an earlier version.

ALTER TABLE users ADD COLUMN stopped_at BIGINT;
