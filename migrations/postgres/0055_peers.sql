-- needs 1
-- Where replicas take requests of each other's sessions, and which replicas they cannot reach.

ALTER TABLE replicas ADD COLUMN peer_address TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE replicas ADD COLUMN unreached TEXT COLLATE "C" NOT NULL DEFAULT '';
