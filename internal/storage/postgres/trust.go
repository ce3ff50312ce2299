package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	addTrust  = "INSERT INTO trust_entries (" + column.TrustColumns + ") VALUES ($1,$2,$3,$4,$5,$6) ON CONFLICT DO NOTHING"
	markTrust = "INSERT INTO trust_entries (" + column.TrustColumns + `) VALUES ($1,$2,$3,$4,$5,$6)
ON CONFLICT (id) DO UPDATE SET disabled_at = coalesce(trust_entries.disabled_at, excluded.disabled_at)`
)

// AddTrust implements storage.TrustEntries.
func (s *Store) AddTrust(ctx context.Context, e storage.TrustEntry) error {
	return s.tx(ctx, "AddTrust", func(ctx context.Context, q querier) error {
		return changed(storage.ErrExists)(exec(ctx, q, addTrust, column.TrustValues(e)...))
	})
}

// ListTrust implements storage.TrustEntries.
func (s *Store) ListTrust(ctx context.Context) (out []storage.TrustEntry, err error) {
	err = s.do(ctx, "ListTrust", func(ctx context.Context, q querier) error {
		read := func(row pgx.CollectableRow) (storage.TrustEntry, error) { return column.ReadTrust(row) }
		out, err = each(ctx, q, read, "SELECT "+column.TrustColumns+" FROM trust_entries ORDER BY created_at, id")
		return err
	})
	return out, err
}

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
