package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const markTrust = "INSERT INTO trust_entries (" + column.TrustColumns + `) VALUES ($1,$2,$3,$4,$5,$6)
ON CONFLICT (id) DO UPDATE SET disabled_at = coalesce(trust_entries.disabled_at, excluded.disabled_at)`

// DisableTrust implements storage.TrustEntries. The cut comes after the entry's end is stored, see
// trustStands. So a repeated call also cuts, if the first failed between the two.
func (s *Store) DisableTrust(ctx context.Context, id string, now time.Time) error {
	return s.do(ctx, "DisableTrust", func(ctx context.Context, q querier) error {
		return all(ctx, q, append([]statement{{markTrust, column.TrustMark(id, now)}}, cutTrust(id, now)...)...)
	})
}

// EnableTrust implements storage.TrustEntries.
func (s *Store) EnableTrust(ctx context.Context, id string) error {
	return s.txCommitted(ctx, "EnableTrust", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, "DELETE FROM trust_entries WHERE id = $1 AND kind = ''", id)
		if err != nil || n > 0 {
			return err
		}
		return changed(storage.ErrNotFound)(exec(ctx, q, "UPDATE trust_entries SET disabled_at = NULL WHERE id = $1", id))
	})
}

// RemoveTrust implements storage.TrustEntries. It disables the entry first, see DisableTrust.
func (s *Store) RemoveTrust(ctx context.Context, id string, now time.Time) error {
	return s.Hooks.Run(ctx, "RemoveTrust", func(ctx context.Context) error {
		err := s.do(ctx, "disable trust entry", func(ctx context.Context, q querier) error {
			return changed(storage.ErrNotFound)(exec(ctx, q,
				"UPDATE trust_entries SET disabled_at = coalesce(disabled_at, $2) WHERE id = $1", id, column.Millis(now)))
		})
		if err != nil {
			return err
		}
		return s.txCommitted(ctx, "remove trust entry", func(ctx context.Context, q querier) error {
			return all(ctx, q,
				append(cutTrust(id, now), statement{"DELETE FROM trust_entries WHERE id = $1", []any{id}})...)
		})
	})
}
