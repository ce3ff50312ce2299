package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	modernc "modernc.org/sqlite"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/ramdisk"
)

// TestEveryStatementCanFail runs the contract while each statement of each verb fails once before
// the verb succeeds. If a verb hid the failure, or kept a part of its changes, the expectations of
// the following verbs would fail.
func TestEveryStatementCanFail(t *testing.T) {
	lane.Long(t, "TestContractInFile runs the statements")
	f := &faults{}
	name := "sqlite failing " + t.Name()
	sql.Register(name, &failingDriver{faults: f})
	steps, err := migration.Steps(migration.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	migrated := filepath.Join(t.TempDir(), "migrated") // copied for each store, because a migration is slow
	first, err := Open(t.Context(), migrated, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	database, err := os.ReadFile(migrated)
	if err != nil {
		t.Fatal(err)
	}
	var one sync.Mutex // verbs take turns, so that the failure belongs to the verb
	hits := 0
	storagetest.RunWithoutRaces(t, func(t *testing.T) storage.Store {
		s := &Store{steps: steps, now: time.Now, log: slog.New(slog.DiscardHandler)}
		path := filepath.Join(inMemory(t), "db")
		if err := os.WriteFile(path, database, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.open(t.Context(), name, path); err != nil {
			t.Fatal(err)
		}
		failing := storagetest.NewFailing(s)
		failing.Surround(func(verb string, do func() error) error {
			one.Lock()
			defer one.Unlock()
			if verb == "Sweep" { // it has many transactions, and each stays committed
				return do()
			}
			for n := 0; ; n++ {
				f.arm(n)
				err := do()
				statement := f.disarm()
				if statement == "" {
					return err
				}
				hits++
				if !errors.Is(err, storagetest.ErrInjected) {
					t.Errorf("%s: got %v, want %v: this statement failed: %s", verb, err, storagetest.ErrInjected,
						statement)
					return err
				}
			}
		})
		return failing
	})
	if hits < 1000 {
		t.Errorf("%d statements failed: the verbs do not go through the driver of the test", hits)
	}
}

// inMemory returns a new directory, in memory if there is room.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(ramdisk.Dir(), "sqlite-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// faults makes the statement after the next n successful ones fail, each time that it runs. It
// ignores statements that begin or end transactions and savepoints.
type faults struct {
	mu    sync.Mutex
	armed bool
	left  int
	hit   string
}

func (f *faults) arm(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.left, f.hit = true, n, ""
}

func (f *faults) disarm() (failed string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.hit
}

func (f *faults) check(query string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	word, _, _ := strings.Cut(query, " ")
	switch word {
	case "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return nil
	}
	if !f.armed || f.hit != "" && f.hit != query {
		return nil
	}
	if f.left > 0 {
		f.left--
		return nil
	}
	f.hit = query
	return storagetest.ErrInjected
}

type failingDriver struct {
	modernc.Driver
	faults *faults
}

func (d *failingDriver) Open(name string) (driver.Conn, error) {
	c, err := d.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &failingConn{c, d.faults}, nil
}

type failingConn struct {
	driver.Conn
	faults *faults
}

func (c *failingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	st, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &failingStmt{st, query, c.faults}, nil
}

func (c *failingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

type failingStmt struct {
	driver.Stmt
	query  string
	faults *faults
}

func (s *failingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.faults.check(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *failingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.faults.check(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}
