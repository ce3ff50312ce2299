package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

const versionTable = `CREATE TABLE IF NOT EXISTS schema_version (
	version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`

// Migrate applies the missing steps, each in its own transaction, or creates a new database with
// all of them. BEGIN IMMEDIATE is the lock: one of several processes applies a step, and the others
// find it applied. It defers no step, because several servers on one file are rarely upgraded one
// at a time.
func (s *Store) Migrate(ctx context.Context) error {
	ctx = storage.Inside(ctx)
	journal := migration.Journal{Log: s.log}
	defer journal.Close()
	for {
		var done []migration.Step
		err := s.write(ctx, "migrate", func(c *conn) (err error) {
			done, err = s.step(c)
			return err
		})
		if err != nil || len(done) == 0 {
			return err
		}
		for _, step := range done {
			journal.Applied(step)
		}
	}
}

// MigrateNow is Migrate.
func (s *Store) MigrateNow(ctx context.Context) error { return s.Migrate(ctx) }

// Tend implements storage.Housekeeping. No work is deferred.
func (s *Store) Tend(ctx context.Context) error {
	return s.Hooks.Run(ctx, "Tend", func(context.Context) error { return nil })
}

// step applies the first missing step, or all steps to a new database, and returns the applied
// steps.
func (s *Store) step(c *conn) ([]migration.Step, error) {
	if _, err := c.exec(versionTable); err != nil {
		return nil, err
	}
	applied, err := applied(c)
	if err != nil {
		return nil, err
	}
	due, err := migration.Due(s.steps, applied, migration.AtOnce())
	if err != nil {
		return nil, schema(err)
	}
	if len(due) == 0 {
		return nil, nil
	}
	script := due[0].SQL
	if whole, version := migration.SQLiteSchema(); len(applied.Steps) == 0 && version == len(due) {
		script = whole
	} else {
		due = due[:1]
	}
	return due, s.apply(c, script, applied, due)
}

// apply runs a script with the effect of the steps, and records them as applied.
func (s *Store) apply(c *conn, script string, applied migration.Applied, steps []migration.Step) error {
	c.dirty = true // the script bypasses exec
	if _, err := c.c.ExecContext(context.Background(), script); err != nil {
		return fmt.Errorf("up to step %d: %w", steps[len(steps)-1].Version, err)
	}
	for _, d := range steps {
		note := applied.Note(d)
		err := all(
			run(c, "INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, ?)", d.Version, d.Name,
				column.Millis(s.now())),
			run(c, "INSERT INTO settings (name, value) VALUES ('schema_needs', ?) "+
				"ON CONFLICT (name) DO UPDATE SET value = excluded.value", note),
		)
		if err != nil {
			return err
		}
		applied.Steps = append(applied.Steps, migration.Status{Version: d.Version, Name: d.Name})
		applied.Needs = migration.ReadNote(applied.Steps, note)
	}
	return nil
}

// MigrationStatus lists the steps of this version, and steps that only the database knows.
func (s *Store) MigrationStatus(ctx context.Context) ([]migration.Status, error) {
	got, err := s.applied(ctx)
	return migration.Merge(s.steps, got), err
}

// Ready implements storage.Housekeeping.
func (s *Store) Ready(ctx context.Context) error {
	return s.Hooks.Run(ctx, "Ready", func(ctx context.Context) error {
		if damage := s.damage.Load(); damage != nil {
			return fmt.Errorf("sqlite: ready: a verb has failed: %w", *damage)
		}
		if s.attendance != nil {
			if err := s.inPlace(); err != nil {
				return fmt.Errorf("sqlite: ready: %w", err)
			}
		}
		got, err := s.applied(ctx)
		if err != nil {
			return err
		}
		return wrap("ready", schema(migration.Current(s.steps, got)))
	})
}

func (s *Store) applied(ctx context.Context) (out migration.Applied, err error) {
	err = s.read(storage.Inside(ctx), "read the schema version", func(c *conn) (err error) {
		var tables int
		err = c.one([]any{&tables}, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'")
		if err != nil || tables == 0 {
			return err
		}
		out, err = applied(c)
		return err
	})
	return out, err
}

func applied(c *conn) (out migration.Applied, err error) {
	out.Steps, err = each(c, func(r scanner) (st migration.Status, err error) {
		var at int64
		err = r.Scan(&st.Version, &st.Name, &at)
		st.AppliedAt = column.Time(at)
		return st, err
	}, "SELECT version, name, applied_at FROM schema_version ORDER BY version")
	if err != nil || len(out.Steps) == 0 {
		return out, err // the first step creates the settings
	}
	var note []byte
	err = ignore(c.one([]any{&note}, "SELECT value FROM settings WHERE name = 'schema_needs'"), storage.ErrNotFound)
	out.Needs = migration.ReadNote(out.Steps, note)
	return out, err
}

func schema(err error) error {
	if errors.Is(err, migration.ErrNewer) || errors.Is(err, migration.ErrPending) {
		return fmt.Errorf("%w: %w", storage.ErrSchema, err)
	}
	return err
}
