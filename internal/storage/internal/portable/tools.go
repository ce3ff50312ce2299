package portable

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	toolsOf      = "SELECT " + column.ToolColumns + " FROM tools WHERE resource = $1 ORDER BY name LIMIT $2"
	toolOf       = "SELECT " + column.ToolWithTexts + " FROM tools WHERE resource = $1 AND name = $2"
	offeredTools = "SELECT " + column.ToolColumns + " FROM tools WHERE offered IS NOT NULL ORDER BY resource, name LIMIT $1"
	// acceptTool ends an offer once.
	acceptTool = `UPDATE tools SET accepted = $3, accepted_at = $5, accepted_by = $4,
	accepted_text = CASE WHEN offered = $3 THEN offered_text ELSE accepted_text END,
	offered = NULL, offered_text = '', offered_at = 0
WHERE resource = $1 AND name = $2 AND offered IS NOT NULL AND (offered = $3 OR accepted = $3)`
)

// tools implements storage.Tools.
type tools struct{ db Engine }

// SeeTools implements storage.Tools.
func (s tools) SeeTools(
	ctx context.Context, resource string, seen map[string]storage.ToolDefinition, trust bool,
) (fresh []storage.Tool, err error) {
	if len(seen) == 0 {
		return nil, nil
	}
	err = s.db.Transact(ctx, "SeeTools", func(c Conn) error {
		fresh = nil
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			var row column.ToolRow
			err := c.One(row.Dest(), column.SeeTool, column.SeenTool(resource, name, seen[name], trust)...)
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

// Tools implements storage.Tools.
func (s tools) Tools(ctx context.Context, resource string) (out []storage.Tool, err error) {
	err = s.db.Read(ctx, "Tools", func(c Conn) (err error) {
		out, err = Each(c, column.ReadTool, toolsOf, resource, storage.MaxTools)
		return err
	})
	return out, err
}

// Tool implements storage.Tools.
func (s tools) Tool(ctx context.Context, resource, name string) (t storage.Tool, err error) {
	err = s.db.Read(ctx, "Tool", func(c Conn) error {
		var row column.ToolRow
		err := c.One(row.Dest(), toolOf, resource, name)
		if err == nil {
			t, err = row.Done()
		}
		return err
	})
	return t, err
}

// OfferedTools implements storage.Tools.
func (s tools) OfferedTools(ctx context.Context, limit int) (out []storage.Tool, err error) {
	err = s.db.Read(ctx, "OfferedTools", func(c Conn) (err error) {
		out, err = Each(c, column.ReadTool, offeredTools, limit)
		return err
	})
	return out, err
}

// AcceptTool implements storage.Tools.
func (s tools) AcceptTool(
	ctx context.Context, resource, name string, digest storage.Hash, by string, now time.Time,
) error {
	return s.db.Transact(ctx, "AcceptTool", func(c Conn) error {
		n, err := c.Exec(acceptTool, resource, name, digest[:], by, column.Millis(now))
		if err != nil || n > 0 {
			return err
		}
		var row column.ToolRow
		if err := c.One(row.Dest(), toolOf, resource, name); err != nil {
			return err
		}
		t, err := row.Done()
		if err != nil {
			return err
		}
		return column.UnacceptedTool(t, digest)
	})
}
