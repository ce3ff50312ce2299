-- needs 1
-- Whether the account of a user began with an identity. Of one that an earlier version has stored it is
-- NULL: it did if it is as old as the account.

ALTER TABLE identities ADD COLUMN began INTEGER;
