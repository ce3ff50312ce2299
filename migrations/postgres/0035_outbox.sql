-- needs 1
-- What receivers of security events are told, until they have it. A trigger writes it with the change
-- that it is about, so that it is there when the change is, also where an earlier version made it.

CREATE TABLE event_receivers (
    id       TEXT COLLATE "C" PRIMARY KEY,
    kinds    TEXT COLLATE "C" NOT NULL,    -- JSON list of what it is told
    named_at BIGINT NOT NULL               -- when a server last had it in its configuration
);

CREATE TABLE outbox (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT COLLATE "C" NOT NULL UNIQUE,
    receiver   TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    subject    TEXT COLLATE "C" NOT NULL,  -- a person, or the client of a grant without one
    detail     TEXT COLLATE "C" NOT NULL,  -- JSON object
    at         BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,            -- when to try it next
    held_until BIGINT,                     -- by the server that sends it
    tries      BIGINT NOT NULL,
    failed     TEXT COLLATE "C" NOT NULL   -- why the last try did
);
CREATE INDEX outbox_receiver ON outbox (receiver, seq);
CREATE INDEX outbox_at ON outbox (at);

-- Tells each receiver that wants it and was named within seven days.
CREATE FUNCTION outbox_tell(what text, whom text, more text, happened bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO outbox (id, receiver, kind, subject, detail, at, due_at, tries, failed)
    SELECT 'set_' || replace(gen_random_uuid()::text, '-', ''), r.id, what, whom, more, happened, 0, 0, ''
    FROM event_receivers r WHERE r.named_at > happened - 604800000 AND jsonb_exists(r.kinds::jsonb, what)
$$;
CREATE FUNCTION outbox_now() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

CREATE FUNCTION outbox_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM outbox_tell('account-purged', OLD.id, '{}', outbox_now());
        RETURN NULL;
    END IF;
    IF NEW.disabled <> OLD.disabled THEN
        PERFORM outbox_tell(CASE WHEN NEW.disabled THEN 'account-disabled' ELSE 'account-enabled' END,
            NEW.id, '{}', outbox_now());
    END IF;
    IF NEW.password_hash <> OLD.password_hash THEN
        PERFORM outbox_tell('credential-change', NEW.id,
            json_build_object('credential_type', 'password', 'change_type', CASE WHEN OLD.password_hash = '' THEN 'create'
                WHEN NEW.password_hash = '' THEN 'delete' ELSE 'update' END)::text, outbox_now());
    END IF;
    IF NEW.stopped_at IS DISTINCT FROM OLD.stopped_at THEN
        PERFORM outbox_tell('session-revoked', NEW.id, '{}', NEW.stopped_at);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_user AFTER DELETE OR UPDATE OF disabled, password_hash, stopped_at ON users
FOR EACH ROW EXECUTE FUNCTION outbox_user();

CREATE FUNCTION outbox_way() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM outbox_tell('credential-change', NEW.user_id,
            json_build_object('credential_type', NEW.kind, 'change_type', 'create')::text, outbox_now());
    ELSIF EXISTS (SELECT 1 FROM users WHERE id = OLD.user_id) THEN
        PERFORM outbox_tell('credential-change', OLD.user_id,
            json_build_object('credential_type', OLD.kind, 'change_type', 'delete')::text, outbox_now());
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_way AFTER INSERT OR DELETE ON ways FOR EACH ROW EXECUTE FUNCTION outbox_way();

CREATE FUNCTION outbox_upstream() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM outbox_tell('session-revoked', NEW.user_id, '{}', NEW.ended_at);
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_upstream AFTER UPDATE OF ended_at ON upstreams FOR EACH ROW
WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.end_reason NOT IN ('signed-out', 'replaced', 'disabled'))
EXECUTE FUNCTION outbox_upstream();

CREATE FUNCTION outbox_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM outbox_tell('grant-revoked', CASE WHEN NEW.user_id = '' THEN NEW.client_id ELSE NEW.user_id END,
        json_build_object('grant', NEW.id, 'client_id', NEW.client_id, 'resource', NEW.resource)::text, NEW.revoked_at);
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_grant AFTER UPDATE OF revoked_at ON grants FOR EACH ROW
WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL) EXECUTE FUNCTION outbox_grant();
