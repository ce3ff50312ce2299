package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// pool holds the connections for reading, opened when they are first needed.
type pool struct {
	db   *sql.DB
	idle chan *conn // nil: not opened yet
	once sync.Once
	err  error // of closing
}

func newPool(db *sql.DB, size int) *pool {
	p := &pool{db: db, idle: make(chan *conn, size)}
	for range size {
		p.idle <- nil
	}
	return p
}

func (p *pool) do(ctx context.Context, fn func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c, ok := <-p.idle:
		if !ok {
			return errClosed
		}
		return p.use(ctx, c, fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pool) use(ctx context.Context, c *conn, fn func(*conn) error) (err error) {
	defer func() { p.idle <- c }() // also after a panic in fn: the others must not starve
	if c == nil {
		if c, err = newConn(ctx, p.db); err != nil {
			return err
		}
	}
	return fn(c)
}

// close waits for the reads that run.
func (p *pool) close() error {
	p.once.Do(func() {
		for range cap(p.idle) {
			if c := <-p.idle; c != nil {
				p.err = joinErr(p.err, c.close())
			}
		}
		close(p.idle)
		p.err = joinErr(p.err, p.db.Close())
	})
	return p.err
}
