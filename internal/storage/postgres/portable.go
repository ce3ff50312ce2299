package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// engine runs the portable verbs of a store.
type engine struct{ s *Store }

// Read implements portable.Engine. Each statement is its own transaction.
func (e engine) Read(ctx context.Context, verb string, fn func(portable.Conn) error) error {
	return e.Write(ctx, verb, fn)
}

// Write implements portable.Engine. Each statement is its own transaction.
func (e engine) Write(ctx context.Context, verb string, fn func(portable.Conn) error) error {
	return e.s.do(ctx, verb, func(ctx context.Context, q querier) error { return fn(portableConn{ctx, q}) })
}

// Transact implements portable.Engine.
func (e engine) Transact(ctx context.Context, verb string, fn func(portable.Conn) error) error {
	return e.s.tx(ctx, verb, func(ctx context.Context, q querier) error { return fn(portableConn{ctx, q}) })
}

// portableConn is a querier for one run of a portable verb, with the context of the run.
type portableConn struct {
	ctx context.Context
	q   querier
}

func (p portableConn) Exec(query string, args ...any) (int64, error) {
	return exec(p.ctx, p.q, query, args...)
}

func (p portableConn) One(dest []any, query string, args ...any) error {
	err := one(p.ctx, p.q, dest, query, args...)
	if errors.Is(err, pgx.ErrNoRows) {
		return storage.ErrNotFound
	}
	return err
}

func (p portableConn) Each(f func(portable.Row) error, query string, args ...any) error {
	rows, err := p.q.Query(p.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
