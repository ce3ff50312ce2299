-- needs 1
-- What receivers of security events are told, until they have it. A trigger writes it with the change
-- that it is about, so that it is there when the change is, also where an earlier version made it.

CREATE TABLE event_receivers (
    id       TEXT PRIMARY KEY,
    kinds    TEXT NOT NULL,                -- JSON list of what it is told
    named_at INTEGER NOT NULL              -- when a server last had it in its configuration
) STRICT;

CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    receiver   TEXT NOT NULL,
    kind       TEXT NOT NULL,
    subject    TEXT NOT NULL,              -- a person, or the client of a grant without one
    detail     TEXT NOT NULL,              -- JSON object
    at         INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,           -- when to try it next
    held_until INTEGER,                    -- by the server that sends it
    tries      INTEGER NOT NULL,
    failed     TEXT NOT NULL               -- why the last try did
) STRICT;
CREATE INDEX outbox_receiver ON outbox (receiver, seq);
CREATE INDEX outbox_at ON outbox (at);

-- What is inserted here is told to each receiver that wants it and was named within seven days.
CREATE VIEW outbox_told AS SELECT '' AS kind, '' AS subject, '' AS detail, 0 AS at;
CREATE TRIGGER outbox_tell INSTEAD OF INSERT ON outbox_told BEGIN
    INSERT INTO outbox (id, receiver, kind, subject, detail, at, due_at, tries, failed)
    SELECT 'set_' || lower(hex(randomblob(16))), r.id, NEW.kind, NEW.subject, NEW.detail, NEW.at, 0, 0, ''
    FROM event_receivers r WHERE r.named_at > NEW.at - 604800000
        AND EXISTS (SELECT 1 FROM json_each(r.kinds) k WHERE k.value = NEW.kind);
END;

CREATE TRIGGER outbox_disabled AFTER UPDATE OF disabled ON users WHEN NEW.disabled <> OLD.disabled BEGIN
    INSERT INTO outbox_told VALUES (CASE WHEN NEW.disabled THEN 'account-disabled' ELSE 'account-enabled' END,
        NEW.id, '{}', CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER outbox_deleted AFTER DELETE ON users BEGIN
    INSERT INTO outbox_told VALUES ('account-purged', OLD.id, '{}', CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER outbox_password AFTER UPDATE OF password_hash ON users WHEN NEW.password_hash <> OLD.password_hash BEGIN
    INSERT INTO outbox_told VALUES ('credential-change', NEW.id,
        json_object('credential_type', 'password', 'change_type',
            CASE WHEN OLD.password_hash = '' THEN 'create' WHEN NEW.password_hash = '' THEN 'delete' ELSE 'update' END),
        CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER outbox_stopped AFTER UPDATE OF stopped_at ON users WHEN NEW.stopped_at IS NOT OLD.stopped_at BEGIN
    INSERT INTO outbox_told VALUES ('session-revoked', NEW.id, '{}', NEW.stopped_at);
END;
CREATE TRIGGER outbox_way_added AFTER INSERT ON ways BEGIN
    INSERT INTO outbox_told VALUES ('credential-change', NEW.user_id,
        json_object('credential_type', NEW.kind, 'change_type', 'create'),
        CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER outbox_way_removed AFTER DELETE ON ways WHEN EXISTS (SELECT 1 FROM users WHERE id = OLD.user_id) BEGIN
    INSERT INTO outbox_told VALUES ('credential-change', OLD.user_id,
        json_object('credential_type', OLD.kind, 'change_type', 'delete'),
        CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER outbox_upstream AFTER UPDATE OF ended_at ON upstreams
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL
    AND NEW.end_reason NOT IN ('signed-out', 'replaced', 'disabled') BEGIN
    INSERT INTO outbox_told VALUES ('session-revoked', NEW.user_id, '{}', NEW.ended_at);
END;
CREATE TRIGGER outbox_grant AFTER UPDATE OF revoked_at ON grants
WHEN OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL BEGIN
    INSERT INTO outbox_told VALUES ('grant-revoked', CASE WHEN NEW.user_id = '' THEN NEW.client_id ELSE NEW.user_id END,
        json_object('grant', NEW.id, 'client_id', NEW.client_id, 'resource', NEW.resource), NEW.revoked_at);
END;
