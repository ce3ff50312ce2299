-- needs 1
-- Groups that an invitation adds its account to. An earlier server ignores them, so during an upgrade the account may
-- get more or less access than its groups allow.

ALTER TABLE one_time_links ADD COLUMN member_of TEXT NOT NULL DEFAULT '[]'; -- JSON
