-- needs 1
-- concurrently
-- The indexes by which entries of the audit log are found by their time: all of them, and those of an event.

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_at;
CREATE INDEX CONCURRENTLY audit_entries_at ON audit_entries (at, idx);
DROP INDEX CONCURRENTLY IF EXISTS audit_entries_event_at;
CREATE INDEX CONCURRENTLY audit_entries_event_at ON audit_entries (event, at, idx);
DROP INDEX CONCURRENTLY IF EXISTS audit_entries_event;
