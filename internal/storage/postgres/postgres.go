// Package postgres stores everything in PostgreSQL, for any number of replicas.
//
// The verbs that a user or a client waits for (Visit, Approve, RedeemCode, RotateRefresh) are one
// statement and so one round trip. Only a refusal needs another, to find its cause. The SQL works
// at READ COMMITTED and above, and behind a transaction pooler. It avoids features that other
// servers of the protocol lack (see portable_test.go).
package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// Options are the options of Open.
type Options struct {
	Now         func() time.Time // this process's clock; nil: time.Now
	Logger      *slog.Logger     // nil: silent
	SkipMigrate bool             // do not change the schema; Ready reports whether it fits
	MaxConns    int32            // 0: pool_max_conns of the URL, or sixteen
	Timeout     time.Duration    // of one verb with its retries; 0: ten seconds

	tracer pgx.QueryTracer // counts statements in tests
	upTo   int             // the last step to apply; 0: all
}

// Store is a storage.Store in PostgreSQL.
type Store struct {
	*storage.Hooks
	portable.Verbs

	pool     *pool
	bare     *atomic.Bool // prepare no statements; see unprepared
	steps    []migration.Step
	fixed    bool         // do not change the schema
	numbered *atomic.Bool // refresh tokens are numbered; see learn
	complete *atomic.Bool // no step is deferred
	timeout  time.Duration
	log      *slog.Logger
}

var _ storage.Store = (*Store)(nil)

// Open connects to the database of a postgres:// URL and migrates it. It returns a wrapped
// storage.ErrSchema if a newer version wrote it. The URL may contain the parameters of pgx, such as
// pool_max_conns or statement_timeout. Open detects a pooler that loses prepared statements, such
// as PgBouncer in transaction mode before 1.21. default_query_exec_mode=cache_describe avoids the
// detection.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	steps, err := migration.Steps(migration.Postgres)
	if err != nil {
		return nil, err
	}
	bare := &atomic.Bool{}
	if o.upTo > 0 {
		steps = steps[:o.upTo]
	}
	pool, err := connect(ctx, url, o, bare)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	s := &Store{
		pool: pool, bare: bare, steps: steps, fixed: o.SkipMigrate, numbered: &atomic.Bool{}, complete: &atomic.Bool{},
		timeout: o.Timeout, log: o.Logger, Hooks: &storage.Hooks{},
	}
	s.Verbs = portable.New(engine{s})
	if err := s.begin(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) begin(ctx context.Context) error {
	if s.fixed {
		if err := s.pool.Ping(ctx); err != nil {
			return fmt.Errorf("postgres: open: %w", err)
		}
		return s.learn(ctx)
	}
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	s.tellPutOff(ctx)
	return s.learn(ctx)
}

// unprepared permanently stops preparing statements if err shows that they do not stay with the
// connection. The failed statement had no effect, so the verb starts over.
func (s *Store) unprepared(err error) {
	switch state(err) {
	case noSuchStatement, statementExists:
		if s.bare.CompareAndSwap(false, true) {
			s.log.Info("the database is behind a pooler that loses prepared statements: going on without them")
			s.pool.Reset()
		}
	}
}

// Close waits for running verbs and closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}
