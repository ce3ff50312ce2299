-- needs 1
-- What a grant needs to rotate its refresh tokens without a row for each. No index covers
-- these columns.

ALTER TABLE grants ADD COLUMN refresh_hash BLOB;                     -- SHA-256 of the secret that its tokens carry
ALTER TABLE grants ADD COLUMN generation INTEGER NOT NULL DEFAULT 0; -- of the newest token; 0: tokens have rows
ALTER TABLE grants ADD COLUMN rotated_at INTEGER;                    -- when that token was issued
ALTER TABLE grants ADD COLUMN refresh_expires_at INTEGER;            -- its idle end
ALTER TABLE grants ADD COLUMN rotations BLOB;                        -- earlier rotated_at, newest first, 8 bytes each
ALTER TABLE refresh_tokens ADD COLUMN generation INTEGER;            -- of the successor; NULL: it has a row
