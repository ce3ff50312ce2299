package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

var errClosed = errors.New("the database is closed")

// Errors that only an administrator can fix. Open and the verbs wrap them.
var (
	// ErrDamaged means that the file is not an SQLite database, or is damaged.
	ErrDamaged = errors.New("the file is damaged, or no SQLite database")
	// ErrLocked means that another process holds the database for longer than verbs wait. Errors
	// that wrap it also wrap storage.ErrBusy.
	ErrLocked error = lockedError{}
	// ErrReadOnly means that the file or its directory cannot be written.
	ErrReadOnly = errors.New("the database cannot be written")
	// ErrFull means that the disk of the file is full. Earlier writes are kept.
	ErrFull = errors.New("the disk is full, make room on it")
)

// lockedError is the type of ErrLocked. It wraps storage.ErrBusy for callers of any store.
type lockedError struct{}

func (lockedError) Error() string { return "another process holds the database" }
func (lockedError) Unwrap() error { return storage.ErrBusy }

// conn is one connection with its prepared statements. It serves one goroutine at a time.
//
// Its statements run without a context. They take microseconds, and interrupting one would roll
// back the verbs of other callers in the same transaction.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
	dirty bool // data may have been changed; for the writer
}

type scanner = portable.Row

func newConn(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: make(map[string]*sql.Stmt)}, nil
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.c.PrepareContext(context.Background(), query)
	if err == nil {
		c.stmts[query] = st
	}
	return st, err
}

// exec runs a statement and returns the number of rows that it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	st, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := st.Exec(args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	c.dirty = c.dirty || n > 0
	return n, err
}

// one scans the first row into dest. Without a row it returns storage.ErrNotFound.
func (c *conn) one(dest []any, query string, args ...any) error {
	st, err := c.prepare(query)
	if err != nil {
		return err
	}
	err = st.QueryRow(args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return storage.ErrNotFound
	}
	c.dirty = c.dirty || !reads(query)
	return err
}

// each calls f with every row until f fails.
func (c *conn) each(f func(scanner) error, query string, args ...any) (err error) {
	st, err := c.prepare(query)
	if err != nil {
		return err
	}
	c.dirty = c.dirty || !reads(query)
	rows, err := st.Query(args...)
	if err != nil {
		return err
	}
	defer func() { err = joinErr(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// each returns f's result for every row.
func each[T any](c *conn, f func(scanner) (T, error), query string, args ...any) ([]T, error) {
	return portable.Each(portableConn{c}, f, query, args...)
}

// reads reports whether a statement changes nothing. Other statements may also return rows.
func reads(query string) bool { return strings.HasPrefix(query, "SELECT") }

func (c *conn) close() error {
	var err error
	for _, st := range c.stmts {
		err = joinErr(err, st.Close())
	}
	return joinErr(err, c.c.Close())
}

// wrap adds the verb to an error. It maps a UNIQUE violation to its sentinel, and a problem of the
// file to its error.
func wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	what := storage.Words(verb)
	var e *driver.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("sqlite: %s: %w", what, err)
	}
	if e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY {
		return fmt.Errorf("sqlite: %s: %w", what, storage.ErrExists)
	}
	if trouble := ofFile(e.Code()); trouble != nil {
		return fmt.Errorf("sqlite: %s: %w: %w", what, trouble, err)
	}
	return fmt.Errorf("sqlite: %s: %w", what, err)
}

// ofFile returns the error of the file for a result code, extended or not.
func ofFile(code int) error {
	if code == lib.SQLITE_IOERR_SHMSIZE { // no room for the memory-mapped index of the log
		return ErrFull
	}
	switch code & 0xff {
	case lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT:
		return ErrDamaged
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return ErrLocked
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return ErrReadOnly
	case lib.SQLITE_FULL:
		return ErrFull
	}
	return nil
}

func joinErr(a, b error) error {
	if a == nil {
		return b
	}
	return errors.Join(a, b)
}

func joinClose(err error, s *Store) error { return joinErr(err, s.Close()) }
