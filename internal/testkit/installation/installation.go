// Package installation provides the environment of a server under test: a store, a clock and a log.
package installation

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/audittest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/ramdisk"
)

// Installation is a store, a clock and a log. Rigs embed it.
type Installation struct {
	*Clock
	Store  *sqlite.Store
	Path   string // the file of the store
	Log    *logtest.Buffer
	Logger *slog.Logger    // writes JSON to Log, debug messages too
	Audit  *audit.Recorder // writes to Logger
}

// New returns an installation with a Clock and an empty store. At the end of the test it closes the
// store, and fails the test if the log has an event or a field that events.yaml does not list.
func New(tb testing.TB) *Installation {
	tb.Helper()
	i := &Installation{Clock: NewClock(), Path: Database(tb), Log: &logtest.Buffer{}}
	i.Store = open(tb, i.Path)
	i.Logger = slog.New(slog.NewJSONHandler(i.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	i.Audit = audit.New(i.Logger)
	tb.Cleanup(func() { audittest.Read(tb).Check(tb, i.Log.String()) })
	return i
}

// Store returns an empty store, closed at the end of the test.
func Store(tb testing.TB) *sqlite.Store {
	tb.Helper()
	return open(tb, Database(tb))
}

func open(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// Database returns the path of a new database file, which is migrated and empty.
func Database(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(ramdisk.Dir(), "installation-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "mcp-authd.db")
	Create(tb, path)
	return path
}

// Create writes a database file that is migrated and empty. It copies a file that the process migrates
// once, because with the race detector a migration takes a quarter of a second.
func Create(tb testing.TB, path string) {
	tb.Helper()
	database, err := template()
	if err == nil {
		err = os.WriteFile(path, database, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp(ramdisk.Dir(), "template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "db")
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil { // empties the write-ahead log into the file
		return nil, err
	}
	return os.ReadFile(path)
})

// start is the initial time of a Clock.
var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Clock is a clock that only moves when a test moves it.
type Clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// NewClock returns a clock that shows noon of 21 November 2026, UTC.
func NewClock() *Clock { return &Clock{now: start} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
