-- needs 1
-- The indexes by which entries of the audit log are found by their time: all of them, and those of an event.

CREATE INDEX audit_entries_at ON audit_entries (at, idx);
CREATE INDEX audit_entries_event_at ON audit_entries (event, at, idx);
DROP INDEX audit_entries_event;
