package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// takeAllowances takes costs $2 of spans $3 from the allowances $1, at $4, in key order, so that
// two replicas cannot deadlock. It skips allowances with too little left, and returns the others.
const takeAllowances = `INSERT INTO allowances AS a (key, full_at, span)
SELECT d.key, $4::bigint + d.cost, d.span FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS d (key, cost, span)
ORDER BY d.key
ON CONFLICT (key) DO UPDATE SET span = excluded.span,
	full_at = excluded.full_at + least(greatest(a.full_at - $4::bigint, 0), excluded.span)
	WHERE excluded.full_at + least(greatest(a.full_at - $4::bigint, 0), excluded.span) <= $4::bigint + excluded.span
RETURNING key`

// errTooLittle undoes the other draws.
var errTooLittle = errors.New("too little left")

// TakeAllowances implements storage.Allowances.
func (s *Store) TakeAllowances(
	ctx context.Context, draws []storage.Draw, now time.Time,
) (waits []time.Duration, err error) {
	if len(draws) == 0 {
		return nil, nil
	}
	keys := make([][]byte, len(draws))
	costs, spans := make([]int64, len(draws)), make([]int64, len(draws))
	for i, d := range draws {
		keys[i], costs[i], spans[i] = d.Key[:], column.Length(d.Cost), column.Length(d.Span)
	}
	err = s.txCommitted(ctx, "TakeAllowances", func(ctx context.Context, q querier) error {
		taken, err := each(ctx, q, pgx.RowTo[[]byte], takeAllowances, keys, costs, spans, column.Millis(now))
		if err != nil || len(taken) == len(draws) {
			return err
		}
		if waits, err = lacking(ctx, q, draws, taken, column.Millis(now)); err != nil {
			return err
		}
		return errTooLittle
	})
	if errors.Is(err, errTooLittle) {
		return waits, nil
	}
	return nil, err
}

// lacking returns how long each draw must wait whose key was not taken from.
func lacking(
	ctx context.Context, q querier, draws []storage.Draw, taken [][]byte, now int64,
) ([]time.Duration, error) {
	waits := make([]time.Duration, len(draws))
	for i, d := range draws {
		if slices.ContainsFunc(taken, func(key []byte) bool { return bytes.Equal(key, d.Key[:]) }) {
			continue
		}
		var full int64
		if err := one(ctx, q, []any{&full}, "SELECT full_at FROM allowances WHERE key = $1", d.Key[:]); err != nil {
			return nil, err
		}
		waits[i] = column.Wait(column.Lacks(full, now, d), d)
	}
	return waits, nil
}
