package postgres

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Size implements storage.Housekeeping.
func (s *Store) Size(ctx context.Context) (storage.Size, error) {
	out := storage.Size{Free: -1}
	err := s.do(ctx, "Size", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&out.Used}, "SELECT pg_database_size(current_database())")
	})
	return out, err
}
