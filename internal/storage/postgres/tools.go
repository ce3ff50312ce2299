package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

var seeTool = "INSERT INTO tools AS t (" + column.SeenToolColumns + ") VALUES ($1,$2,$3,$4,$5,$6,$7,$8)" +
	column.ToolAgain("''::bytea")

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

func readTool(row pgx.CollectableRow) (storage.Tool, error) { return column.ReadTool(row) }

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

// Tools implements storage.Tools.
func (s *Store) Tools(ctx context.Context, resource string) (out []storage.Tool, err error) {
	err = s.do(ctx, "Tools", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, readTool, toolsOf, resource, storage.MaxTools)
		return err
	})
	return out, err
}

// Tool implements storage.Tools.
func (s *Store) Tool(ctx context.Context, resource, name string) (t storage.Tool, err error) {
	err = s.do(ctx, "Tool", func(ctx context.Context, q querier) error {
		var row column.ToolRow
		err := one(ctx, q, row.Dest(), toolOf, resource, name)
		if err == nil {
			t, err = row.Done()
		}
		return err
	})
	return t, err
}

// OfferedTools implements storage.Tools.
func (s *Store) OfferedTools(ctx context.Context, limit int) (out []storage.Tool, err error) {
	err = s.do(ctx, "OfferedTools", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, readTool, offeredTools, limit)
		return err
	})
	return out, err
}

// AcceptTool implements storage.Tools.
func (s *Store) AcceptTool(
	ctx context.Context, resource, name string, digest storage.Hash, by string, now time.Time,
) error {
	return s.tx(ctx, "AcceptTool", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, acceptTool, resource, name, digest[:], by, column.Millis(now))
		if err != nil || n > 0 {
			return err
		}
		var row column.ToolRow
		if err := one(ctx, q, row.Dest(), toolOf, resource, name); err != nil {
			return err
		}
		t, err := row.Done()
		if err != nil {
			return err
		}
		return column.UnacceptedTool(t, digest)
	})
}
