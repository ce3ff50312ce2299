package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// pool holds the connections for reading. It opens one when all others are in use. Opening one
// takes milliseconds, because it reads the schema, which it keeps in memory.
type pool struct {
	db     *sql.DB
	turns  chan struct{} // one for each connection
	opened chan *conn    // idle connections

	once sync.Once
	err  error // from closing
}

func newPool(db *sql.DB, size int) *pool {
	p := &pool{db: db, turns: make(chan struct{}, size), opened: make(chan *conn, size)}
	for range size {
		p.turns <- struct{}{}
	}
	return p
}

func (p *pool) do(ctx context.Context, fn func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case _, ok := <-p.turns:
		if !ok {
			return errClosed
		}
		return p.use(ctx, fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pool) use(ctx context.Context, fn func(*conn) error) (err error) {
	var c *conn
	defer func() { // also after a panic in fn, so that other callers do not starve
		if c != nil {
			p.opened <- c
		}
		p.turns <- struct{}{}
	}()
	select {
	case c = <-p.opened:
	default:
		if c, err = newConn(ctx, p.db); err != nil {
			return err
		}
	}
	return fn(c)
}

// close waits for running reads.
func (p *pool) close() error {
	p.once.Do(func() {
		for range cap(p.turns) {
			<-p.turns
		}
		close(p.turns)
		for range len(p.opened) {
			p.err = joinErr(p.err, (<-p.opened).close())
		}
		p.err = joinErr(p.err, p.db.Close())
	})
	return p.err
}
