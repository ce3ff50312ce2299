-- needs 1
-- Clients that authenticate by a key of their own (private_key_jwt), and what it takes
-- to find the registrations that nobody uses.

ALTER TABLE clients ADD COLUMN jwks BYTEA;
ALTER TABLE clients ADD COLUMN jwks_uri TEXT NOT NULL DEFAULT '';
CREATE INDEX clients_unused ON clients (created_at) WHERE last_used_at IS NULL;
CREATE INDEX clients_idle ON clients (last_used_at);
