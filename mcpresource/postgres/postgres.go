// Package postgres lets the replicas of an MCP server share the state of their guards in
// PostgreSQL. That is call rates, used proofs, the owners of sessions, and the tasks of package
// gosdk.
//
//	shared, err := postgres.New(ctx, db, "https://mcp.example.com/mcp")
//	err = gosdk.Serve(ctx, tools, gosdk.ServeOptions{..., Adjust: shared.Configure})
//
// Configure sets the members Limiter, DPoP and Sessions of a mcpresource.Config; each can also be
// set alone.
//
// A single replica does not need this package, and neither do several with sticky sessions and
// separate limits. The package links no driver: db is your *sql.DB, with a driver that supports
// numbered parameters, such as github.com/jackc/pgx/v5/stdlib. All times are by the clock of the
// database, except for tasks.
//
// Each tool call, each proof and each request in a session costs one additional statement.
//
// While the database does not answer, each replica counts limits alone. Requests with proofs or in
// sessions get 503, and all others continue.
package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Schema creates the tables, as New does. If the program may not create tables, run Schema as a
// user who may, and grant the program SELECT, INSERT, UPDATE and DELETE.
const Schema = `CREATE TABLE IF NOT EXISTS mcpresource_allowances (
	key bytea PRIMARY KEY,
	full_at bigint NOT NULL,
	span bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS mcpresource_allowances_full ON mcpresource_allowances (full_at);
CREATE TABLE IF NOT EXISTS mcpresource_replays (
	id bytea PRIMARY KEY,
	until bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS mcpresource_replays_until ON mcpresource_replays (until);
CREATE TABLE IF NOT EXISTS mcpresource_sessions (
	id bytea PRIMARY KEY,
	person bytea NOT NULL,
	client bytea NOT NULL,
	pending boolean NOT NULL,
	used_at bigint NOT NULL
);
ALTER TABLE mcpresource_sessions ADD COLUMN IF NOT EXISTS shows_links boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS mcpresource_sessions_person ON mcpresource_sessions (person, used_at);
CREATE INDEX IF NOT EXISTS mcpresource_sessions_used ON mcpresource_sessions (used_at);
CREATE TABLE IF NOT EXISTS mcpresource_tasks (
	id bytea PRIMARY KEY,
	owner bytea NOT NULL,
	person bytea NOT NULL,
	name text COLLATE "C" NOT NULL,
	created bigint NOT NULL,
	expires bigint NOT NULL,
	version bigint NOT NULL,
	state bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS mcpresource_tasks_owner ON mcpresource_tasks (owner, created);
CREATE INDEX IF NOT EXISTS mcpresource_tasks_person ON mcpresource_tasks (person, expires);
CREATE INDEX IF NOT EXISTS mcpresource_tasks_expires ON mcpresource_tasks (expires);
`

// schemaLock is the advisory lock for creating the schema.
const schemaLock = 0x6d637072 // "mcpr"

// Shared is the shared state of a guard's replicas. It implements mcpresource.Counter and
// mcpresource.Replays. It is safe for concurrent use.
type Shared struct {
	db     *sql.DB
	server [sha256.Size]byte

	clock    func() time.Time // when to sweep; the database decides what has expired
	sweeping sync.Mutex       // guards swept
	swept    time.Time
}

var (
	_ mcpresource.Counter = (*Shared)(nil)
	_ mcpresource.Replays = (*Shared)(nil)
)

// New returns the shared state for the replicas of one MCP server in db, and creates missing
// tables. resource identifies the server; servers with different names share nothing. The caller
// must close db. It returns an error if the database does not answer or the tables cannot be
// created.
func New(ctx context.Context, db *sql.DB, resource string) (*Shared, error) {
	var there bool
	err := db.QueryRowContext(ctx, `SELECT to_regclass('mcpresource_allowances') IS NOT NULL
		AND to_regclass('mcpresource_replays') IS NOT NULL AND to_regclass('mcpresource_tasks') IS NOT NULL
		AND EXISTS (SELECT 1 FROM pg_attribute
			WHERE attrelid = to_regclass('mcpresource_sessions') AND attname = 'shows_links' AND NOT attisdropped)`).
		Scan(&there)
	if err != nil {
		return nil, fmt.Errorf("mcpresource/postgres: looking for the tables: %w", err)
	}
	if !there {
		if err := create(ctx, db); err != nil {
			return nil, fmt.Errorf("mcpresource/postgres: creating the tables, see Schema: %w", err)
		}
	}
	return &Shared{db: db, clock: time.Now, server: sha256.Sum256([]byte(resource))}, nil
}

// key returns the database key for a name of this server. It is a digest, because the database must
// not contain session ids, which give access to sessions.
func (s *Shared) key(name []byte) []byte {
	sum := sha256.Sum256(append(s.server[:], name...))
	return sum[:]
}

func create(ctx context.Context, db *sql.DB) error {
	return inTx(ctx, db, func(tx *sql.Tx) error {
		// Otherwise two replicas could both find a table missing.
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", schemaLock); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, Schema)
		return err
	})
}

func inTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// now is the time of the database, in microseconds since the epoch.
const now = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// late is how much longer a proof is stored than the guards require, because their clocks differ.
const late = 10 * time.Minute

// Use implements mcpresource.Replays.
func (s *Shared) Use(ctx context.Context, id string, until time.Time) (first bool, err error) {
	s.sweep(ctx)
	result, err := s.db.ExecContext(ctx,
		`INSERT INTO mcpresource_replays (id, until) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`,
		s.key([]byte(id)), until.Add(late).UnixMicro())
	if err != nil {
		return false, fmt.Errorf("mcpresource/postgres: using what may be used once: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

const (
	sweepPace  = time.Minute
	sweepBatch = 5000
)

// sweep removes expired rows, once a minute in the request of one caller. Remaining rows wait for
// the next sweep, and do not count.
func (s *Shared) sweep(ctx context.Context) {
	if !s.sweeping.TryLock() {
		return
	}
	defer s.sweeping.Unlock()
	began := s.clock()
	if began.Sub(s.swept) < sweepPace {
		return
	}
	s.swept = began
	for table, ended := range map[string]string{
		"allowances": "full_at < " + now,
		"replays":    "until < " + now,
		"sessions":   fmt.Sprintf("used_at < %s - %d", now, idle.Microseconds()),
	} {
		// Skip rows that another replica is removing.
		result, err := s.db.ExecContext(ctx, fmt.Sprintf(`DELETE FROM mcpresource_%[1]s WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM mcpresource_%[1]s WHERE %[2]s LIMIT %[3]d FOR UPDATE SKIP LOCKED))`, table, ended, sweepBatch))
		if err != nil {
			continue // the request itself reports a database that does not answer
		}
		if n, err := result.RowsAffected(); err == nil && n == sweepBatch {
			s.swept = time.Time{} // there is more
		}
	}
}
