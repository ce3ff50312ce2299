package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const putAllowance = `INSERT INTO allowances (key, full_at, span) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET full_at = excluded.full_at, span = excluded.span`

// TakeAllowances implements storage.Allowances. All writes are serialized, so the values that it
// reads stay current until it writes.
func (s *Store) TakeAllowances(
	ctx context.Context, draws []storage.Draw, now time.Time,
) (waits []time.Duration, err error) {
	at := column.Millis(now)
	err = s.write(ctx, "TakeAllowances", func(c *conn) error {
		waits = nil
		lacks, refused, found := make([]int64, len(draws)), false, make([]time.Duration, len(draws))
		for i, d := range draws {
			full := at
			err := c.one([]any{&full}, "SELECT full_at FROM allowances WHERE key = ?", d.Key[:])
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			lacks[i] = column.Lacks(full, at, d)
			found[i] = column.Wait(lacks[i], d)
			refused = refused || found[i] > 0
		}
		if refused {
			waits = found
			return nil
		}
		for i, d := range draws {
			_, err := c.exec(putAllowance, d.Key[:], at+lacks[i]+column.Length(d.Cost), column.Length(d.Span))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return waits, nil
}
