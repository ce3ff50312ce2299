package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// engine runs the portable verbs of a store.
type engine struct{ s *Store }

// Read implements portable.Engine.
func (e engine) Read(ctx context.Context, verb string, fn func(portable.Conn) error) error {
	return e.s.read(ctx, verb, func(c *conn) error { return fn(portableConn{c}) })
}

// Write implements portable.Engine. All writes have a transaction.
func (e engine) Write(ctx context.Context, verb string, fn func(portable.Conn) error) error {
	return e.s.write(ctx, verb, func(c *conn) error { return fn(portableConn{c}) })
}

// Transact implements portable.Engine.
func (e engine) Transact(ctx context.Context, verb string, fn func(portable.Conn) error) error {
	return e.Write(ctx, verb, fn)
}

// portableConn is a conn for portable verbs.
type portableConn struct{ c *conn }

func (p portableConn) Exec(query string, args ...any) (int64, error) { return p.c.exec(query, args...) }

func (p portableConn) One(dest []any, query string, args ...any) error {
	return p.c.one(dest, query, args...)
}

func (p portableConn) Each(f func(portable.Row) error, query string, args ...any) error {
	return p.c.each(f, query, args...)
}
