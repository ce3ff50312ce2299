-- needs 1
-- What people may do as the operator's who are not administrators: '' or 'auditor' or 'support'.
-- Administrators stay those with admin, and '' here, so that a server of an earlier version knows them.

ALTER TABLE users ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE one_time_links ADD COLUMN role TEXT NOT NULL DEFAULT '';
