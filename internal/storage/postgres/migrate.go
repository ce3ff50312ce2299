package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

const (
	versionTable = `CREATE TABLE IF NOT EXISTS schema_version (
	version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`

	// Row 0 is the lock of migrations. A row lock belongs to the transaction, so it also works
	// behind a transaction pooler, unlike a session lock.
	lockRow = "INSERT INTO schema_version (version, name, applied_at) VALUES (0, 'lock', 0) ON CONFLICT DO NOTHING"
	// The lock must not be waited for inside the database: a waiting statement has a snapshot, and
	// a concurrent index build waits for all snapshots to end.
	takeLock = "SELECT version FROM schema_version WHERE version = 0 FOR UPDATE SKIP LOCKED"

	migrateTimeout = 10 * time.Minute
	lockPoll       = 100 * time.Millisecond
)

// errMigrating: another replica runs a migration.
var errMigrating = errors.New("another process migrates the database")

// Migrate applies the missing steps, each in its own transaction. One of several replicas applies a
// step; the others wait and find it applied. If the schema fits, Migrate changes nothing and needs
// no permission to change it. A deferred step waits for its time, by the database's clock, unless
// the database is new, because then no older program uses it.
func (s *Store) Migrate(ctx context.Context) error { return s.migrate(ctx, false) }

// MigrateNow is Migrate without deferring steps.
func (s *Store) MigrateNow(ctx context.Context) error { return s.migrate(ctx, true) }

func (s *Store) migrate(ctx context.Context, atOnce bool) error {
	ctx = storage.Inside(ctx)
	slow := *s
	slow.timeout = migrateTimeout
	applied, err := slow.applied(ctx)
	if err != nil {
		return err
	}
	at := s.pool.clock.now()
	if atOnce || len(applied.Steps) == 0 {
		at = migration.AtOnce()
	}
	due, err := migration.Due(s.steps, applied, at)
	if err != nil || len(due) == 0 {
		return schema(err)
	}
	if err := slow.prepareMigrations(ctx); err != nil {
		return err
	}
	journal := migration.Journal{Log: s.log}
	defer journal.Close()
	for {
		var done migration.Step
		err := slow.retry(ctx, "migrate", func(ctx context.Context) error {
			return slow.on(ctx, func(c *pgxpool.Conn) error {
				// At a higher isolation level the transaction would have a snapshot, see takeLock.
				return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
					done, err = s.step(ctx, tx, at)
					return err
				})
			})
		})
		if errors.Is(err, errMigrating) {
			if err = pause(ctx, lockPoll); err == nil {
				continue
			}
		}
		if err != nil || done.Version == 0 {
			return err
		}
		journal.Applied(done)
	}
}

// prepareMigrations creates the table of versions. Despite IF NOT EXISTS, two replicas can collide
// in the catalogue. The one that fails tries again and finds it.
func (s *Store) prepareMigrations(ctx context.Context) error {
	return s.do(ctx, "create schema_version", func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, versionTable)
		switch state(err) {
		case uniqueViolation, duplicateTable, duplicateObject:
			return errAgain
		}
		if err != nil {
			return err
		}
		_, err = q.Exec(ctx, lockRow)
		return err
	})
}

// step applies the first due step and returns it, the zero Step if no step is due.
func (s *Store) step(ctx context.Context, tx pgx.Tx, at time.Time) (none migration.Step, err error) {
	if n, err := exec(ctx, tx, takeLock); err != nil || n == 0 {
		return none, cmp.Or(err, errMigrating)
	}
	got, err := applied(ctx, tx)
	if err != nil {
		return none, err
	}
	due, err := migration.Due(s.steps, got, at)
	if err != nil || len(due) == 0 {
		return none, schema(err)
	}
	d := due[0]
	if err := s.run(ctx, tx, d); err != nil {
		return none, fmt.Errorf("step %d, %s: %w", d.Version, d.Name, err)
	}
	return d, all(ctx, tx,
		statement{"INSERT INTO schema_version (version, name, applied_at) VALUES ($1, $2, $3)",
			[]any{d.Version, d.Name, column.Millis(s.pool.clock.now())}},
		statement{"INSERT INTO settings (name, value) VALUES ('schema_needs', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			[]any{got.Note(d)}},
	)
}

// run runs the script of a step in tx, or for a concurrent step on another connection.
func (s *Store) run(ctx context.Context, tx pgx.Tx, d migration.Step) error {
	// The simple protocol runs a script of many statements as one transaction.
	if !d.Concurrently {
		_, err := tx.Conn().PgConn().Exec(ctx, d.SQL).ReadAll()
		return err
	}
	// With the extended protocol, the last statement keeps its snapshot until the next one. A
	// concurrent index build would wait for that.
	if _, err := tx.Conn().PgConn().Exec(ctx, "SELECT").ReadAll(); err != nil {
		return err
	}
	config := s.pool.Config().ConnConfig
	delete(config.RuntimeParams, "statement_timeout") // the timeout of verbs
	beside, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer beside.Close(context.WithoutCancel(ctx))
	for _, statement := range d.Statements() {
		if _, err := beside.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tend implements storage.Housekeeping.
func (s *Store) Tend(ctx context.Context) error {
	return s.Hooks.Run(ctx, "Tend", func(ctx context.Context) error {
		if s.complete.Load() {
			return nil
		}
		if !s.fixed {
			if err := s.Migrate(ctx); err != nil {
				return err
			}
		}
		return s.learn(ctx)
	})
}

// tellPutOff logs which steps are deferred, and until when.
func (s *Store) tellPutOff(ctx context.Context) {
	all, err := s.MigrationStatus(ctx)
	for _, st := range all {
		if err == nil && !st.DueAt.IsZero() {
			s.log.Info("a migration is put off, for servers of an earlier version to be replaced", "version",
				st.Version, "name", st.Name, "due", st.DueAt)
		}
	}
}

// MigrationStatus lists the steps of this version, and steps that only the database knows.
func (s *Store) MigrationStatus(ctx context.Context) ([]migration.Status, error) {
	got, err := s.applied(ctx)
	return migration.Merge(s.steps, got), err
}

// Ready implements storage.Housekeeping.
func (s *Store) Ready(ctx context.Context) error {
	return s.Hooks.Run(ctx, "Ready", func(ctx context.Context) error {
		got, err := s.applied(ctx)
		if err != nil {
			return err
		}
		if err := migration.Current(s.steps, got); err != nil {
			return fmt.Errorf("postgres: ready: %w", schema(err))
		}
		return nil
	})
}

func (s *Store) applied(ctx context.Context) (out migration.Applied, err error) {
	err = s.do(storage.Inside(ctx), "read the schema version", func(ctx context.Context, q querier) (err error) {
		out, err = applied(ctx, q)
		if state(err) == undefinedTable {
			return nil
		}
		return err
	})
	return out, err
}

func applied(ctx context.Context, q querier) (out migration.Applied, err error) {
	out.Steps, err = each(ctx, q, func(r pgx.CollectableRow) (st migration.Status, err error) {
		var at int64
		err = r.Scan(&st.Version, &st.Name, &at)
		st.AppliedAt = column.Time(at)
		return st, err
	}, "SELECT version, name, applied_at FROM schema_version WHERE version > 0 ORDER BY version")
	if err != nil || len(out.Steps) == 0 {
		return out, err // the first step creates the settings
	}
	var note []byte
	err = one(ctx, q, []any{&note}, "SELECT value FROM settings WHERE name = 'schema_needs'")
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, pgx.ErrNoRows) {
		err = nil // written by an earlier version
	}
	out.Needs = migration.ReadNote(out.Steps, note)
	return out, err
}

func schema(err error) error {
	if errors.Is(err, migration.ErrNewer) || errors.Is(err, migration.ErrPending) {
		return fmt.Errorf("%w: %w", storage.ErrSchema, err)
	}
	return err
}
