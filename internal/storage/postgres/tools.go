package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

var seeTool = "INSERT INTO tools AS t (" + column.SeenToolColumns + ") VALUES ($1,$2,$3,$4,$5,$6,$7,$8)" +
	column.ToolAgain("''::bytea")

// SeeTools implements storage.Tools.
func (s *Store) SeeTools(
	ctx context.Context, resource string, seen map[string]storage.ToolDefinition, trust bool,
) (fresh []storage.Tool, err error) {
	if len(seen) == 0 {
		return nil, nil
	}
	err = s.tx(ctx, "SeeTools", func(ctx context.Context, q querier) error {
		fresh = nil
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			var row column.ToolRow
			err := one(ctx, q, row.Dest(), seeTool, column.SeenTool(resource, name, seen[name], trust)...)
			if errors.Is(err, pgx.ErrNoRows) {
				continue // already known
			}
			if err != nil {
				return err
			}
			t, err := row.Done()
			if err != nil {
				return err
			}
			fresh = append(fresh, t)
		}
		return nil
	})
	return fresh, err
}
