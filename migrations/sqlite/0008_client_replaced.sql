-- needs 1
-- When a client last replaced its registration: from then on it has some days for its first
-- approval, after which it ends. The row of one that a replica of the version before has
-- replaced counts from its registration.

ALTER TABLE clients ADD COLUMN replaced_at INTEGER;
CREATE INDEX clients_abandoned ON clients (coalesce(replaced_at, created_at))
    WHERE source = 'managed' AND deleted_at IS NULL AND last_used_at IS NULL;
