package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// noteCalls stores the calls $2 at $3 of the grants $1, in grant order, so that two replicas cannot
// deadlock.
const noteCalls = `INSERT INTO last_calls AS l (grant_id, tool, called_at, kept_until)
SELECT g.id, v.tool, v.called_at, g.expires_at
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS v (grant_id, tool, called_at) JOIN grants g ON g.id = v.grant_id
WHERE g.revoked_at IS NULL AND g.expires_at > v.called_at AND NOT ` + isCut + `
ORDER BY g.id
ON CONFLICT (grant_id) DO UPDATE SET tool = excluded.tool, called_at = excluded.called_at
	WHERE l.called_at <= excluded.called_at`

// NoteCalls implements storage.LastCalls.
func (s *Store) NoteCalls(ctx context.Context, calls map[string]storage.ToolCall) error {
	if len(calls) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(calls))
	tools, at := make([]string, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		tools[i], at[i] = calls[id].Tool, column.Millis(calls[id].At)
	}
	return s.do(ctx, "NoteCalls", func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, noteCalls, ids, tools, at)
		return err
	})
}
