package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// querier is a connection, where each statement is its own transaction, or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// SQLSTATE codes (PostgreSQL manual, appendix A).
const (
	warning              = "01000"
	readOnly             = "25006"
	diskFull             = "53100"
	tooManyConnections   = "53300"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	notInRepertoire      = "22021" // text with a NUL or broken UTF-8
	noSuchStatement      = "26000"
	insufficientRight    = "42501"
	noSchema             = "3F000" // no schema to create in: none of the search path exists, or may be used
	statementExists      = "42P05"
	undefinedTable       = "42P01"
	duplicateTable       = "42P07"
	duplicateObject      = "42710"
	lockNotAvailable     = "55P03" // within the administrator's lock_timeout
)

const (
	// maxTries fits into the timeout of a verb. On a server with serializable isolation only, many
	// concurrent transactions fail on each other even without a common row.
	maxTries      = 32
	longestPause  = 9 // 2^9 ms; half of it on average
	readOnlyTries = 2
)

// errAgain makes a verb start over, because the row that refused it has changed since.
var errAgain = errors.New("changed meanwhile")

// do runs fn as one verb on a connection. It is for verbs of one statement, or whose further
// statements need no common transaction. fn may run several times. verb is the name of the method.
func (s *Store) do(ctx context.Context, verb string, fn func(ctx context.Context, q querier) error) error {
	return s.retry(ctx, verb, func(ctx context.Context) error {
		return s.on(ctx, func(c *pgxpool.Conn) error { return fn(ctx, c) })
	})
}

// tx is do in a transaction.
func (s *Store) tx(ctx context.Context, verb string, fn func(ctx context.Context, q querier) error) error {
	return s.retry(ctx, verb, func(ctx context.Context) error {
		return s.on(ctx, func(c *pgxpool.Conn) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return fn(ctx, tx) })
		})
	})
}

// txCommitted is tx at read committed, for statements that wait for rows of others and continue
// with their result. At a higher isolation level they would fail whenever they wait.
func (s *Store) txCommitted(ctx context.Context, verb string, fn func(ctx context.Context, q querier) error) error {
	return s.retry(ctx, verb, func(ctx context.Context) error {
		return s.on(ctx, func(c *pgxpool.Conn) error {
			return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted},
				func(tx pgx.Tx) error { return fn(ctx, tx) })
		})
	})
}

// on runs fn on one connection of the pool.
func (s *Store) on(ctx context.Context, fn func(c *pgxpool.Conn) error) error {
	done, err := s.pool.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	c, err := s.pool.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.pool.release(c)
	err = replicated(c.Conn(), func() error { return fn(c) })
	s.pool.doubt(ctx, err)
	s.pool.distrust(ctx, c.Conn())
	return err
}

// retry passes a verb through the hooks. It repeats fn if it failed because of a concurrent
// transaction, lost its prepared statement, or never reached the server. The timeout of a verb
// limits the total. A verb of several transactions calls s.Hooks.Run itself.
func (s *Store) retry(ctx context.Context, verb string, fn func(context.Context) error) error {
	return s.Hooks.Run(ctx, verb, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		for try := 1; ; try++ {
			err := fn(ctx)
			if err == nil {
				return nil
			}
			s.unprepared(err)
			if try == maxTries || !again(err, try) || ctx.Err() != nil {
				return fmt.Errorf("postgres: %s: %w", storage.Words(verb), cause(ctx, err))
			}
			pause := time.Duration(rand.Int64N(int64(time.Millisecond) << min(try, longestPause)))
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
}

func again(err error, try int) bool {
	switch state(err) {
	case readOnly:
		return try <= readOnlyTries // the connection may lead to the old primary
	case serializationFailure, deadlockDetected, noSuchStatement, statementExists:
		return true
	}
	return errors.Is(err, errAgain) || pgconn.SafeToRetry(err)
}

func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// cause maps an error of the database to an error of the contract.
func cause(ctx context.Context, err error) error {
	switch {
	case state(err) == uniqueViolation:
		return storage.ErrExists
	case state(err) == notInRepertoire, errors.Is(err, pgx.ErrNoRows):
		// Text that the database cannot store is in no record.
		return storage.ErrNotFound
	case state(err) == lockNotAvailable:
		return fmt.Errorf("%w: %w", storage.ErrBusy, err)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return errors.Join(ctx.Err(), err) // the server's code for a cancelled statement differs
	}
	return err
}

// exec returns the number of rows that a statement changed.
func exec(ctx context.Context, q querier, sql string, args ...any) (int64, error) {
	tag, err := q.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// one scans the first row into dest. Without a row it returns pgx.ErrNoRows, which becomes
// storage.ErrNotFound.
func one(ctx context.Context, q querier, dest []any, sql string, args ...any) error {
	return q.QueryRow(ctx, sql, args...).Scan(dest...)
}

// each returns f's result for every row.
func each[T any](
	ctx context.Context, q querier, f func(pgx.CollectableRow) (T, error), sql string, args ...any,
) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, f)
}

// changed returns missed when a statement changed no row.
func changed(missed error) func(int64, error) error {
	return func(n int64, err error) error {
		if err == nil && n == 0 {
			return missed
		}
		return err
	}
}

// statement is one of several statements of a transaction.
type statement struct {
	sql  string
	args []any
}

// all runs statements whose row counts do not matter.
func all(ctx context.Context, q querier, statements ...statement) error {
	for _, st := range statements {
		if _, err := q.Exec(ctx, st.sql, st.args...); err != nil {
			return err
		}
	}
	return nil
}
