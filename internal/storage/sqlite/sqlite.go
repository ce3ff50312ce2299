// Package sqlite stores everything in one SQLite file. It is the default, for a single server
// process, and needs no C compiler.
//
// All writes go through one connection and one goroutine (see writer.go). It commits all waiting
// verbs in one transaction, so full durability costs one fsync for many verbs. Reads have their own
// connections and never wait for a write. Other processes (the command line) may use the same file.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// Memory is the path of a database in memory that ends with its Store.
const Memory = ":memory:"

// Options are the options of Open.
type Options struct {
	Now         func() time.Time // stamps migrations; nil: time.Now
	Logger      *slog.Logger     // nil: silent
	SkipMigrate bool             // do not change the schema; Ready reports whether it fits

	upTo int // the last step to apply; 0: all
}

// Store is a storage.Store in SQLite.
type Store struct {
	storage.Hooks
	portable.Verbs

	writer *writer
	reads  *pool // nil: reads go through the writer (a database in memory)
	asides *pool // for contexts marked by storage.Aside; nil if reads is
	steps  []migration.Step
	now    func() time.Time
	log    *slog.Logger

	path       string      // Memory, or absolute
	file       os.FileInfo // of the file when it was opened
	attendance *os.File    // locked by this server; nil: Attend was not called

	damage atomic.Pointer[error] // damage found by a verb
}

var _ storage.Store = (*Store)(nil)

// Open opens or creates the database at path and migrates it. Only the owner can read a new file.
// It returns a wrapped storage.ErrSchema if a newer version wrote the file. ErrDamaged, ErrLocked,
// ErrReadOnly and ErrFull describe a problem of the file.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	steps, err := migration.Steps(migration.SQLite)
	if err != nil {
		return nil, err
	}
	if o.upTo > 0 {
		steps = steps[:o.upTo]
	}
	s := &Store{steps: steps, now: o.Now, log: o.Logger}
	if err := s.open(ctx, "sqlite", path); err != nil {
		return nil, wrap("open "+path, err)
	}
	if !o.SkipMigrate {
		if err := s.Migrate(ctx); err != nil {
			return nil, joinClose(err, s)
		}
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, driver, path string) error {
	s.Verbs = portable.New(engine{s})
	name := Memory
	s.path = path
	if path != Memory {
		abs, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if err := settled(abs); err != nil {
			return err
		}
		if err := create(abs); err != nil {
			return err
		}
		if s.file, err = os.Stat(abs); err != nil {
			return err
		}
		name, s.path = fileURI(abs), abs
	}
	w, err := sql.Open(driver, dsn(name, false))
	if err != nil {
		return err
	}
	if s.writer, err = startWriter(ctx, w); err != nil {
		return err
	}
	if path == Memory {
		return nil
	}
	if s.reads, err = openPool(driver, name, min(max(runtime.GOMAXPROCS(0), 2), 8)); err != nil {
		return joinClose(err, s)
	}
	if s.asides, err = openPool(driver, name, 1); err != nil {
		return joinClose(err, s)
	}
	return nil
}

func openPool(driver, name string, size int) (*pool, error) {
	r, err := sql.Open(driver, dsn(name, true))
	if err != nil {
		return nil, err
	}
	return newPool(r, size), nil
}

// create creates the file before SQLite does, because SQLite would let the umask decide who can
// read it. The journal files inherit its mode and owner.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return errors.Join(secrets.HandOver(f), f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	return f.Close()
}

// fileURI escapes the special characters of an SQLite URI file name: %, ? and #.
func fileURI(abs string) string {
	p := filepath.ToSlash(abs)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: p, OmitHost: true}).String()
}

func dsn(name string, readOnly bool) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		// pages, 16 MB
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "wal_autocheckpoint(4000)",
		"cache_size(-16000)", // KiB: the inner nodes of the indexes over some millions of tokens
	}}
	if readOnly {
		q["_pragma"] = []string{"busy_timeout(5000)", "query_only(1)"}
	}
	return name + "?" + q.Encode()
}

// write runs fn as one verb in a transaction. If it returns nil, the change is durable. verb is the
// name of the method.
func (s *Store) write(ctx context.Context, verb string, fn func(c *conn) error) error {
	return s.verb(ctx, verb, s.writer.do, fn)
}

// read runs fn as one verb, which only reads, on a connection that no write delays.
func (s *Store) read(ctx context.Context, verb string, fn func(c *conn) error) error {
	switch {
	case s.reads == nil:
		return s.verb(ctx, verb, s.writer.do, fn)
	case storage.IsAside(ctx):
		return s.verb(ctx, verb, s.asides.do, fn)
	}
	return s.verb(ctx, verb, s.reads.do, fn)
}

// writeIf is write if the query some is true. It is for verbs that servers call every few seconds and
// that rarely find work, because each write delays other verbs.
func (s *Store) writeIf(ctx context.Context, verb, some string, args []any, fn func(c *conn) error) error {
	return s.Hooks.Run(ctx, verb, func(ctx context.Context) error {
		var found bool
		err := s.read(ctx, verb, func(c *conn) error { return c.one([]any{&found}, some, args...) })
		if err != nil || !found {
			return err
		}
		return s.write(ctx, verb, fn)
	})
}

// verb passes a verb through the hooks, and runs it with do. A verb of several transactions calls
// s.hooks.Run itself.
func (s *Store) verb(
	ctx context.Context, name string, do func(context.Context, func(*conn) error) error, fn func(c *conn) error,
) error {
	return s.Hooks.Run(ctx, name, func(ctx context.Context) error {
		err := wrap(name, do(ctx, fn))
		if errors.Is(err, ErrDamaged) {
			s.damage.CompareAndSwap(nil, &err) // other verbs may not notice it
		}
		return err
	})
}

// Close waits for running verbs and closes the database.
func (s *Store) Close() error {
	err := s.writer.close()
	for _, p := range []*pool{s.reads, s.asides} {
		if p != nil {
			err = joinErr(err, p.close())
		}
	}
	if s.attendance != nil {
		err = joinErr(err, s.attendance.Close())
	}
	return err
}
