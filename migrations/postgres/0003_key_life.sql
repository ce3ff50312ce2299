-- needs 1
-- A signing key is published before it signs: at most one such key of an algorithm,
-- and when each began to sign.

ALTER TABLE signing_keys ADD COLUMN activated_at BIGINT;
CREATE UNIQUE INDEX signing_keys_next ON signing_keys (algorithm) WHERE state = 'next';
