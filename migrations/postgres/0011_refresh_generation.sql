-- needs 1
-- What a grant needs to rotate its refresh tokens without a row for each. No index covers
-- these columns, and pages keep room, so that a rotation stays within its page (HOT).

ALTER TABLE grants ADD COLUMN refresh_hash BYTEA;                    -- SHA-256 of the secret that its tokens carry
ALTER TABLE grants ADD COLUMN generation INTEGER NOT NULL DEFAULT 0; -- of the newest token; 0: tokens have rows
ALTER TABLE grants ADD COLUMN rotated_at BIGINT;                     -- when that token was issued
ALTER TABLE grants ADD COLUMN refresh_expires_at BIGINT;             -- its idle end
ALTER TABLE grants ADD COLUMN rotations BYTEA;                       -- earlier rotated_at, newest first, 8 bytes each
ALTER TABLE grants SET (fillfactor = 85);
ALTER TABLE refresh_tokens ADD COLUMN generation INTEGER;            -- of the successor; NULL: it has a row
