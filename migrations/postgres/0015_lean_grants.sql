-- needs 13
-- after 1h
-- concurrently
-- What the step grant_keys has replaced, and what no verb needs: codes are found by their
-- grants, and the grants for a resource in the order of all. A program that does not know
-- that step would look for them row by row, so it has to be gone by now.

DROP INDEX CONCURRENTLY IF EXISTS grants_user;
DROP INDEX CONCURRENTLY IF EXISTS grants_client;
DROP INDEX CONCURRENTLY IF EXISTS grants_resource;
ALTER TABLE grants DROP CONSTRAINT IF EXISTS grants_code_hash_key;
