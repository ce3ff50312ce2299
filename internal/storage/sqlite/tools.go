package sqlite

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

var seeTool = "INSERT INTO tools AS t (" + column.SeenToolColumns + ") VALUES (?,?,?,?,?,?,?,?)" +
	column.ToolAgain("x''")

// SeeTools implements storage.Tools.
func (s *Store) SeeTools(
	ctx context.Context, resource string, seen map[string]storage.ToolDefinition, trust bool,
) (fresh []storage.Tool, err error) {
	if len(seen) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "SeeTools", func(c *conn) error {
		fresh = nil
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			var row column.ToolRow
			err := c.one(row.Dest(), seeTool, column.SeenTool(resource, name, seen[name], trust)...)
			if errors.Is(err, storage.ErrNotFound) {
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
