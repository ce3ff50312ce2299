-- steps 1 to 63
-- Written by go test ./internal/storage/sqlite -run TestSchemaOfNewDatabases -update.

CREATE TABLE clients (
    id            TEXT PRIMARY KEY,
    secret_hash   BLOB,
    name          TEXT NOT NULL DEFAULT '',
    redirect_uris TEXT NOT NULL DEFAULT '[]',
    grant_types   TEXT NOT NULL DEFAULT '[]',
    auth_method   TEXT NOT NULL DEFAULT '',
    scopes        TEXT NOT NULL DEFAULT '[]',
    resources     TEXT NOT NULL DEFAULT '[]',
    source        TEXT NOT NULL DEFAULT '',
    metadata      BLOB,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    deleted_at    INTEGER                  -- a tombstone: the id is never reused
, jwks BLOB, jwks_uri TEXT NOT NULL DEFAULT '', replaced_at INTEGER, application TEXT) STRICT;

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    name_key      TEXT NOT NULL UNIQUE,    -- the name without regard to case
    password_hash TEXT NOT NULL,
    admin         INTEGER NOT NULL,
    disabled      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    last_login_at INTEGER
, mail TEXT NOT NULL DEFAULT '', locale TEXT NOT NULL DEFAULT '', stopped_at INTEGER, role TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE sessions (
    hash       BLOB PRIMARY KEY,
    user_id    TEXT NOT NULL,
    auth_time  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
, upstream_id TEXT, methods TEXT, proved_at INTEGER, agent TEXT, address TEXT, seen_at INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE refresh_tokens (
    hash       BLOB PRIMARY KEY,
    grant_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    rotated_at INTEGER,
    sealed     BLOB                        -- the successor, for replies within the grace
, generation INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE denied_tokens (
    id         TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE resources (
    uri        TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL
, alias_of TEXT REFERENCES resources (uri) ON DELETE CASCADE, dpop TEXT NOT NULL DEFAULT '', upstream TEXT NOT NULL DEFAULT '', tool_rules TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE signing_keys (
    id         TEXT PRIMARY KEY,
    algorithm  TEXT NOT NULL,
    state      TEXT NOT NULL,
    public     BLOB NOT NULL,
    private    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER,
    expires_at INTEGER
, activated_at INTEGER) STRICT;

CREATE TABLE spent (
    purpose    TEXT NOT NULL,
    id         TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (purpose, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE failures (
    key        BLOB PRIMARY KEY,
    count      INTEGER NOT NULL,
    first_at   INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    name       TEXT PRIMARY KEY,
    value      BLOB,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE identities (
    connector    TEXT NOT NULL,
    subject      TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    label        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL, began INTEGER,
    PRIMARY KEY (connector, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE upstreams (
    id            TEXT PRIMARY KEY,
    connector     TEXT NOT NULL,
    subject       TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    session_id    TEXT,    -- the provider's name for it
    linked        INTEGER NOT NULL,
    sealed        BLOB,                    -- NULL once it has ended
    scopes        TEXT NOT NULL,
    version       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    checked_at    INTEGER,
    due_at        INTEGER,
    claimed_until INTEGER,
    ended_at      INTEGER,
    end_reason    TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE departures (
    key        BLOB PRIMARY KEY,
    sealed     BLOB,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE farewells (
    hash       BLOB PRIMARY KEY,
    connector  TEXT NOT NULL,
    reason     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "consents" (
    user_id    TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    resource   TEXT NOT NULL,
    scope      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    place      TEXT NOT NULL DEFAULT '',
    material   BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (user_id, client_id, resource, place, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    id       TEXT PRIMARY KEY,
    at       INTEGER NOT NULL,
    name     TEXT NOT NULL,
    fields   TEXT NOT NULL,
    taken_at INTEGER                       -- when a server took it to log it
, leased_at INTEGER) STRICT;

CREATE TABLE handbacks (
    id         TEXT PRIMARY KEY, -- of the session at the provider that they are of
    connector  TEXT NOT NULL,
    subject    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE TABLE grant_walks (codes INTEGER NOT NULL, newer INTEGER NOT NULL) STRICT;

CREATE TABLE cuts (
    id         TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL,    -- the grants of whom; '': of all
    client_id  TEXT NOT NULL,    -- to which client; '': to all
    resource   TEXT NOT NULL,    -- for which resource; '': for all
    connector  TEXT NOT NULL,    -- resting on sessions at which provider; '': on any or none
    revoked_by TEXT NOT NULL,
    at         INTEGER NOT NULL,
    upto       INTEGER NOT NULL, -- the last status_index that it cuts
    phase      INTEGER NOT NULL,
    place      INTEGER NOT NULL, -- the last status_index that was looked at in this phase
    reached    TEXT NOT NULL,    -- the last session at a provider that was
    grants     INTEGER NOT NULL  -- how many it has marked
) STRICT;

CREATE TABLE "grants" (
    id                 TEXT PRIMARY KEY,
    client_id          TEXT NOT NULL,
    user_id            TEXT NOT NULL,
    resource           TEXT NOT NULL,
    scopes             TEXT NOT NULL,
    auth_time          INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL,
    revoked_at         INTEGER,
    code_hash          BLOB NOT NULL,          -- once it is used: a digest with its challenge
    code_redirect      TEXT NOT NULL,          -- '' once it is used
    code_challenge     TEXT NOT NULL,          -- '' once it is used
    code_expires_at    INTEGER NOT NULL,
    code_used_at       INTEGER,
    sweep_at           INTEGER NOT NULL,
    status_index       INTEGER,
    upstream_id        TEXT,
    revoked_by         TEXT,
    refresh_hash       BLOB,
    generation         INTEGER NOT NULL DEFAULT 0,
    rotated_at         INTEGER,
    refresh_expires_at INTEGER,
    rotations          BLOB
, given_agent TEXT, given_from TEXT, used_from TEXT, paused_at INTEGER, narrowed_at INTEGER, for_program INTEGER NOT NULL DEFAULT 0, methods TEXT, trust_id TEXT, asserted TEXT) STRICT;

CREATE TABLE ways (
    id            TEXT PRIMARY KEY,
    user_id       TEXT NOT NULL,
    kind          TEXT NOT NULL,           -- passkey, app
    name          TEXT NOT NULL,
    rp_id         TEXT NOT NULL,           -- '' for an app
    credential_id BLOB,                    -- NULL for an app
    data          BLOB NOT NULL,           -- a passkey's public credential; an app's secret, sealed
    counter       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER
) STRICT;

CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL,
    hash    BLOB NOT NULL,
    used_at INTEGER,
    PRIMARY KEY (user_id, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE notices (
    id      TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    kind    TEXT NOT NULL,
    detail  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    seen_at INTEGER
) STRICT;

CREATE TABLE devices (
    code_hash      BLOB PRIMARY KEY,
    user_code_hash BLOB NOT NULL UNIQUE,
    client_id      TEXT NOT NULL,
    resource       TEXT NOT NULL,
    scopes         TEXT NOT NULL,
    agent          TEXT NOT NULL,
    address        TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    interval_ms    INTEGER NOT NULL,       -- between two polls
    polled_at      INTEGER,
    early          INTEGER NOT NULL,       -- the last poll came too early
    decided_at     INTEGER,
    grant_id       TEXT                    -- NULL: not approved
, proved_after INTEGER, acr TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;

CREATE TABLE one_time_links (
    hash       BLOB PRIMARY KEY, -- of the token
    stop_hash  BLOB,             -- of the token that stops it
    kind       TEXT NOT NULL,    -- invite, recover, reset
    user_id    TEXT NOT NULL,    -- '' of an invitation
    name       TEXT NOT NULL,    -- of the account to be made
    name_key   TEXT NOT NULL,
    admin      INTEGER NOT NULL,
    mail       TEXT NOT NULL,
    browser    BLOB,             -- hash of the browser that it is for; NULL: any
    not_before INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
, role TEXT NOT NULL DEFAULT '', member_of TEXT NOT NULL DEFAULT '[]') STRICT;

CREATE TABLE remote_sign_ins (
    secret_hash  BLOB PRIMARY KEY,
    code_hash    BLOB NOT NULL UNIQUE,
    agent        TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_at   INTEGER,
    session_hash BLOB,                     -- of the person who approved; NULL: not approved
    collected_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE last_calls (
    grant_id   TEXT PRIMARY KEY,
    tool       TEXT NOT NULL,
    called_at  INTEGER NOT NULL,
    kept_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE trust_entries (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    issuer      TEXT NOT NULL,
    rules       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;

CREATE TABLE pushed_requests (
    reference_hash BLOB PRIMARY KEY,
    client_id      TEXT NOT NULL,
    sealed         BLOB NOT NULL,         -- the parameters
    expires_at     INTEGER NOT NULL,
    browser_hash   BLOB                   -- that has opened it; NULL: it was not opened
) STRICT, WITHOUT ROWID;

CREATE TABLE trust_links (
    issuer     TEXT NOT NULL,
    tenant     TEXT NOT NULL, -- '': none
    kind       TEXT NOT NULL, -- 'subject', 'saml' or 'account'
    subject    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    made_by    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, tenant, kind, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE trust_cuts (
    id         TEXT PRIMARY KEY,
    trust_id   TEXT NOT NULL,
    revoked_by TEXT NOT NULL,
    at         INTEGER NOT NULL,
    upto       INTEGER NOT NULL, -- the last status_index that it cuts
    phase      INTEGER NOT NULL,
    place      INTEGER NOT NULL, -- the last status_index that was looked at in this phase
    grants     INTEGER NOT NULL  -- how many it has marked
) STRICT;

CREATE TABLE nodes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    grant_id   TEXT NOT NULL,
    parent_id  TEXT NOT NULL,
    above      TEXT NOT NULL,
    depth      INTEGER NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    cut_at     INTEGER
) STRICT;

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

CREATE TABLE audiences (
    issuer     TEXT PRIMARY KEY,
    policy     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE asserted_ends (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE allowances (
    key     BLOB PRIMARY KEY,
    full_at INTEGER NOT NULL,
    span    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_entries (
    idx      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    event    TEXT NOT NULL,
    grant_id TEXT,                         -- NULL: about none
    person   TEXT,                         -- id; NULL: about none
    leaf     TEXT NOT NULL                 -- canonical JSON, which is hashed
) STRICT;

CREATE TABLE audit_head (
    name      TEXT PRIMARY KEY,
    size      INTEGER NOT NULL,
    first_idx INTEGER NOT NULL             -- the entries below it were removed
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_tiles (
    level  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    hashes BLOB NOT NULL,                  -- up to 256, of 32 bytes
    PRIMARY KEY (level, number)
) STRICT;

CREATE TABLE audit_writers (
    id   TEXT PRIMARY KEY,
    mark INTEGER NOT NULL,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_checkpoints (
    size   INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    signed TEXT NOT NULL
) STRICT;

CREATE TABLE attempt_steps (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    kept_until INTEGER NOT NULL,
    keys       TEXT NOT NULL,
    body       TEXT NOT NULL
) STRICT;

CREATE TABLE attempt_keys (
    seq INTEGER NOT NULL REFERENCES attempt_steps (seq) ON DELETE CASCADE,
    key TEXT NOT NULL,
    PRIMARY KEY (seq, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_sinks (
    name     TEXT PRIMARY KEY,
    next_idx INTEGER NOT NULL,
    lost     INTEGER NOT NULL,             -- entries that it will never have
    failed   TEXT NOT NULL,                -- why the last delivery did; '': it did not
    at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keyed_requests (
    key_hash    BLOB PRIMARY KEY,        -- of the caller and their key
    caller_hash BLOB NOT NULL,
    digest      BLOB NOT NULL,           -- of the input
    until       INTEGER NOT NULL,        -- it has ended by then, one way or the other
    expires_at  INTEGER NOT NULL,
    sealed      BLOB                     -- the answer; NULL: there is none
) STRICT, WITHOUT ROWID;

CREATE TABLE proposals (
    id             TEXT PRIMARY KEY,
    operation      TEXT NOT NULL,
    input          BLOB NOT NULL,             -- sealed
    thing          TEXT NOT NULL,             -- digest of what it is about; '': about nothing yet
    by_user        TEXT NOT NULL,
    by_name        TEXT NOT NULL,
    by_client      TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    state          TEXT NOT NULL,             -- open, accepted, declined
    decided_user   TEXT NOT NULL,
    decided_name   TEXT NOT NULL,
    decided_client TEXT NOT NULL,
    decided_at     INTEGER NOT NULL               -- 0: it is open
) STRICT, WITHOUT ROWID;

CREATE TABLE replicas (
    id            TEXT PRIMARY KEY,          -- of the process
    name          TEXT NOT NULL,
    version       TEXT NOT NULL,
    migration     INTEGER NOT NULL,          -- the last step that its program knows
    issuer        TEXT NOT NULL,
    address       TEXT NOT NULL,
    started_at    INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    skew          INTEGER NOT NULL,          -- milliseconds by which this database's clock is ahead of its own
    audit_waiting INTEGER NOT NULL,
    audit_lost    INTEGER NOT NULL
, peer_address TEXT NOT NULL DEFAULT '', unreached TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;

CREATE TABLE tools (
    resource      TEXT NOT NULL,
    name          TEXT NOT NULL,
    accepted      BLOB,                        -- digest; NULL: no definition was
    accepted_text TEXT NOT NULL DEFAULT '',
    accepted_at   INTEGER NOT NULL DEFAULT 0,
    accepted_by   TEXT NOT NULL DEFAULT '',   -- '': it was the first to be seen
    offered       BLOB,                        -- digest of what was seen since and is not accepted
    offered_text  TEXT NOT NULL DEFAULT '',
    offered_at    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (resource, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE clearances (
    binding    BLOB PRIMARY KEY,             -- digest of all that it is for
    id         TEXT NOT NULL,
    user_id    TEXT NOT NULL,     -- '': the call of a machine
    client_id  TEXT NOT NULL,
    grant_id   TEXT NOT NULL,     -- '': client credentials
    node_id    TEXT NOT NULL,
    resource   TEXT NOT NULL,
    tool       TEXT NOT NULL,
    digest     BLOB NOT NULL,                -- of the arguments
    by_whom    TEXT NOT NULL,
    approvers  TEXT NOT NULL,
    acr        TEXT NOT NULL,
    max_age    INTEGER NOT NULL,
    sealed     BLOB NOT NULL,                -- the arguments
    state      TEXT NOT NULL,
    giver_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
, application TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    id         BLOB NOT NULL PRIMARY KEY,     -- digest of MCP server, owner and name
    owner      BLOB NOT NULL,                 -- digest of MCP server, person, application and grant
    person     BLOB NOT NULL,                 -- digest of MCP server and person
    name       TEXT NOT NULL,                 -- by which the owner finds it
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    version    INTEGER NOT NULL,              -- how often it was changed
    sealed     BLOB NOT NULL
) STRICT;

CREATE TABLE certificate_files (
    key         TEXT PRIMARY KEY,
    sealed      BLOB NOT NULL,
    modified_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pauses (
    id          TEXT PRIMARY KEY,  -- digest of the person, the application and the resource
    user_id     TEXT NOT NULL,
    application TEXT NOT NULL,
    resource    TEXT NOT NULL,
    client_id   TEXT NOT NULL,     -- the client that was paused
    client_name TEXT NOT NULL,
    paused_at   INTEGER,           -- NULL: not paused, see expires_at
    expires_at  INTEGER            -- PostgreSQL: until when the row is kept by which approvals and a pause wait for each other
) STRICT, WITHOUT ROWID;

CREATE TABLE application_holds (
    application TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    blocked     INTEGER NOT NULL, -- 0: paused
    held_by     TEXT NOT NULL,
    at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE application_aliases (
    application TEXT PRIMARY KEY, -- the key that clients of it have by themselves
    counts_as   TEXT NOT NULL,    -- the key by which they are filed
    at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE application_cuts (
    id          TEXT PRIMARY KEY,
    application TEXT NOT NULL,
    revoked_by  TEXT NOT NULL,
    at          INTEGER NOT NULL,
    upto        INTEGER NOT NULL, -- the last status_index that it cuts
    phase       INTEGER NOT NULL,
    place       INTEGER NOT NULL, -- the last status_index that was looked at in this phase
    grants      INTEGER NOT NULL  -- how many it has marked
) STRICT;

CREATE TABLE account_groups (
    name        TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE group_members (
    group_name TEXT NOT NULL REFERENCES account_groups (name) ON DELETE CASCADE,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    added_at   INTEGER NOT NULL,
    PRIMARY KEY (group_name, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE access_rules (
    resource   TEXT NOT NULL,
    subject    TEXT NOT NULL,     -- user:ID, group:NAME or everyone
    user_id    TEXT REFERENCES users (id) ON DELETE CASCADE,
    group_name TEXT REFERENCES account_groups (name),
    scopes     TEXT NOT NULL,     -- JSON
    all_scopes INTEGER NOT NULL,  -- 1: every scope of the resource
    set_at     INTEGER NOT NULL, approve TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (resource, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE provider_groups (
    group_name TEXT NOT NULL REFERENCES account_groups (name) ON DELETE CASCADE,
    connector  TEXT NOT NULL,
    name       TEXT NOT NULL, -- at the provider
    added_at   INTEGER NOT NULL,
    PRIMARY KEY (group_name, connector, name)
) STRICT, WITHOUT ROWID;

INSERT INTO grant_walks VALUES (0, 0);

CREATE INDEX sessions_user ON sessions (user_id);

CREATE INDEX sessions_expires ON sessions (expires_at);

CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id);

CREATE INDEX refresh_tokens_sealed ON refresh_tokens (rotated_at) WHERE sealed IS NOT NULL;

CREATE INDEX denied_tokens_expires ON denied_tokens (expires_at);

CREATE UNIQUE INDEX signing_keys_active ON signing_keys (algorithm) WHERE state = 'active';

CREATE INDEX spent_expires ON spent (expires_at);

CREATE INDEX failures_expires ON failures (expires_at);

CREATE INDEX clients_unused ON clients (created_at) WHERE last_used_at IS NULL;

CREATE INDEX clients_idle ON clients (last_used_at);

CREATE UNIQUE INDEX signing_keys_next ON signing_keys (algorithm) WHERE state = 'next';

CREATE INDEX sessions_upstream ON sessions (upstream_id) WHERE upstream_id IS NOT NULL;

CREATE INDEX identities_user ON identities (user_id);

CREATE INDEX upstreams_user ON upstreams (user_id, connector);

CREATE INDEX upstreams_subject ON upstreams (connector, subject);

CREATE INDEX upstreams_session ON upstreams (connector, session_id) WHERE session_id IS NOT NULL;

CREATE INDEX upstreams_due ON upstreams (due_at) WHERE ended_at IS NULL;

CREATE INDEX upstreams_ended ON upstreams (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX departures_expires ON departures (expires_at);

CREATE INDEX farewells_expires ON farewells (expires_at);

CREATE INDEX consents_client ON consents (client_id);

CREATE INDEX consents_resource ON consents (resource);

CREATE INDEX events_at ON events (at);

CREATE INDEX events_waiting ON events (at) WHERE taken_at IS NULL;

CREATE INDEX clients_abandoned ON clients (coalesce(replaced_at, created_at))
    WHERE source = 'managed' AND deleted_at IS NULL AND last_used_at IS NULL;

CREATE INDEX handbacks_expires ON handbacks (expires_at);

CREATE INDEX users_with_password ON users (id) WHERE password_hash <> '';

CREATE UNIQUE INDEX grants_status ON grants (status_index);

CREATE INDEX grants_revoked ON grants (status_index) WHERE revoked_at IS NOT NULL;

CREATE INDEX grants_upstream ON grants (upstream_id) WHERE upstream_id IS NOT NULL;

CREATE INDEX grants_sweep ON grants (sweep_at);

CREATE INDEX grants_by_client ON grants (substr(client_id, 9, 4) || substr(client_id, -8), substr(id, 1, 11));

CREATE INDEX grants_by_pair ON grants (substr(user_id, -8), substr(client_id, 9, 4) || substr(client_id, -8));

CREATE INDEX grants_code ON grants (code_hash) WHERE code_used_at IS NULL;

CREATE INDEX ways_user ON ways (user_id);

CREATE UNIQUE INDEX ways_credential ON ways (credential_id) WHERE credential_id IS NOT NULL;

CREATE INDEX notices_user ON notices (user_id, at);

CREATE INDEX notices_at ON notices (at);

CREATE INDEX notices_seen ON notices (seen_at) WHERE seen_at IS NOT NULL;

CREATE INDEX devices_expires ON devices (expires_at);

CREATE UNIQUE INDEX one_time_links_stop ON one_time_links (stop_hash) WHERE stop_hash IS NOT NULL;

CREATE INDEX one_time_links_user ON one_time_links (user_id, name_key, kind);

CREATE INDEX one_time_links_expires ON one_time_links (expires_at);

CREATE INDEX grants_by_person ON grants (substr(user_id, -8), substr(id, 1, 11));

CREATE INDEX grants_paused ON grants (status_index) WHERE paused_at IS NOT NULL;

CREATE INDEX grants_for_programs ON grants (user_id) WHERE for_program;

CREATE INDEX remote_sign_ins_expires ON remote_sign_ins (expires_at);

CREATE INDEX last_calls_kept ON last_calls (kept_until);

CREATE INDEX pushed_requests_expires ON pushed_requests (expires_at);

CREATE INDEX trust_links_user ON trust_links (user_id);

CREATE INDEX nodes_by_grant ON nodes (grant_id);

CREATE INDEX nodes_ends ON nodes (expires_at);

CREATE INDEX outbox_receiver ON outbox (receiver, seq);

CREATE INDEX outbox_at ON outbox (at);

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

CREATE INDEX asserted_ends_expires ON asserted_ends (expires_at);

CREATE INDEX allowances_whole ON allowances (full_at);

CREATE INDEX nodes_cut ON nodes (grant_id) WHERE cut_at IS NOT NULL;

CREATE INDEX audit_entries_grant ON audit_entries (grant_id, idx) WHERE grant_id IS NOT NULL;

CREATE INDEX audit_entries_person ON audit_entries (person, idx) WHERE person IS NOT NULL;

CREATE INDEX audit_writers_at ON audit_writers (at);

CREATE INDEX attempt_steps_at ON attempt_steps (at);

CREATE INDEX attempt_steps_kept ON attempt_steps (kept_until);

CREATE INDEX attempt_keys_by_key ON attempt_keys (key, seq);

CREATE INDEX keyed_requests_expires ON keyed_requests (expires_at);

CREATE INDEX keyed_requests_caller ON keyed_requests (caller_hash, expires_at);

CREATE UNIQUE INDEX clearances_id ON clearances (id);

CREATE INDEX clearances_grant ON clearances (grant_id, client_id);

CREATE INDEX clearances_user ON clearances (user_id);

CREATE INDEX clearances_expires ON clearances (expires_at);

CREATE INDEX tasks_owner ON tasks (owner, created_at);

CREATE INDEX tasks_person ON tasks (person, expires_at);

CREATE INDEX tasks_expires ON tasks (expires_at);

CREATE INDEX pauses_user ON pauses (user_id, paused_at);

CREATE INDEX pauses_expires ON pauses (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX clients_application ON clients (application, id) WHERE application IS NOT NULL;

CREATE INDEX clients_unfiled ON clients (id) WHERE application IS NULL AND deleted_at IS NULL;

CREATE INDEX group_members_user ON group_members (user_id);

CREATE INDEX access_rules_user ON access_rules (user_id);

CREATE INDEX access_rules_group ON access_rules (group_name);

CREATE INDEX audit_entries_at ON audit_entries (at, idx);

CREATE INDEX audit_entries_event_at ON audit_entries (event, at, idx);
