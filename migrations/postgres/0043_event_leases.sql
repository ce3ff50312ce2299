-- needs 1
-- When a server took an event that a command has left: if it does not say soon that it is logged, another
-- one takes it. A server of an earlier version takes what is leased, too. And the index by which entries
-- of the audit log are found by their event.

ALTER TABLE events ADD COLUMN leased_at BIGINT;
CREATE INDEX audit_entries_event ON audit_entries (event, idx);
