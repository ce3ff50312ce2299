-- needs 10
-- concurrently
-- Indexes of grants whose entries are short: hashes of the ids of client and person, which are
-- compared in full when a row is read, and the beginning of the grant's own id, whose order is
-- that of the whole. The order in which grants were stored, and how far two walks along it
-- have come (see walk.go).

DROP INDEX CONCURRENTLY IF EXISTS grants_by_client;
CREATE INDEX CONCURRENTLY grants_by_client ON grants (hashtext(client_id), left(id, 11));
DROP INDEX CONCURRENTLY IF EXISTS grants_by_pair;
CREATE INDEX CONCURRENTLY grants_by_pair ON grants (hashtext(user_id), hashtext(client_id));
DROP INDEX CONCURRENTLY IF EXISTS grants_status;
CREATE INDEX CONCURRENTLY grants_status ON grants (status_index);
CREATE TABLE IF NOT EXISTS grant_walks AS SELECT coalesce(max(status_index), 0) AS codes, coalesce(max(status_index), 0) AS newer FROM grants;
