-- needs 1
-- The groups that the account of an invitation is put into. A server of an earlier version accepts an invitation
-- without them: the person gets less.

ALTER TABLE one_time_links ADD COLUMN member_of TEXT NOT NULL DEFAULT '[]'; -- JSON
