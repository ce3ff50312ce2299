package postgres

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// take takes one from the allowance $1 by the generic cell rate algorithm. $2 is the time to
// restore one and $3 the time to restore all, in microseconds. The state of an allowance is one
// number: the time when it is full again. It returns no row if too little is left.
const take = `INSERT INTO mcpresource_allowances AS a (key, full_at, span)
SELECT $1::bytea, ` + now + ` + $2::bigint, $3::bigint
ON CONFLICT (key) DO UPDATE SET span = excluded.span,
	full_at = excluded.full_at + least(greatest(a.full_at - excluded.full_at + $2::bigint, 0), excluded.span)
	WHERE least(greatest(a.full_at - excluded.full_at + $2::bigint, 0), excluded.span) + $2::bigint <= excluded.span
RETURNING full_at`

// lacking returns the time until take would succeed.
const lacking = `SELECT greatest(least(greatest(full_at - ` + now + `, 0), $3::bigint) + $2::bigint - $3::bigint, 0)
FROM mcpresource_allowances WHERE key = $1::bytea`

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// errTooLittle rolls back what was taken from the other allowance.
var errTooLittle = errors.New("too little left")

// Take implements mcpresource.Counter.
func (s *Shared) Take(ctx context.Context, from []mcpresource.Allowance) (wait time.Duration, err error) {
	s.sweep(ctx)
	if len(from) == 1 { // the usual case needs no transaction
		wait, err = s.takeOne(ctx, s.db, from[0])
	} else {
		wait, err = s.takeAll(ctx, from)
	}
	if err != nil {
		return 0, fmt.Errorf("mcpresource/postgres: counting: %w", err)
	}
	return wait, nil
}

func (s *Shared) takeAll(ctx context.Context, from []mcpresource.Allowance) (wait time.Duration, err error) {
	// Sorted, so that two replicas cannot deadlock.
	from = slices.SortedFunc(slices.Values(from), func(a, b mcpresource.Allowance) int {
		return bytes.Compare(a.Key[:], b.Key[:])
	})
	err = inTx(ctx, s.db, func(tx *sql.Tx) error {
		for _, a := range from {
			own, err := s.takeOne(ctx, tx, a)
			if err != nil {
				return err
			}
			wait = max(wait, own)
		}
		if wait > 0 {
			return errTooLittle
		}
		return nil
	})
	if errors.Is(err, errTooLittle) {
		return wait, nil
	}
	return wait, err
}

func (s *Shared) takeOne(
	ctx context.Context, q querier, a mcpresource.Allowance,
) (wait time.Duration, err error) {
	cost := a.Every.Microseconds()
	args := []any{s.key(a.Key[:]), cost, cost * int64(a.Burst)}
	var us int64
	err = q.QueryRowContext(ctx, take, args...).Scan(&us)
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	err = q.QueryRowContext(ctx, lacking, args...).Scan(&us)
	if errors.Is(err, sql.ErrNoRows) { // swept meanwhile: it is full
		return time.Microsecond, nil
	}
	return max(time.Duration(us)*time.Microsecond, time.Microsecond), err
}
