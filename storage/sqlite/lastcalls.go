package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// noteCall keeps a call, ?2 at ?3, of the grant ?1.
const noteCall = `INSERT INTO last_calls AS l (grant_id, tool, called_at, kept_until)
SELECT g.id, ?2, ?3, g.expires_at FROM grants g
WHERE g.id = ?1 AND g.revoked_at IS NULL AND g.expires_at > ?3 AND NOT ` + isCut + `
ON CONFLICT (grant_id) DO UPDATE SET tool = excluded.tool, called_at = excluded.called_at
	WHERE l.called_at <= excluded.called_at`

// NoteCalls implements storage.LastCalls.
func (s *Store) NoteCalls(ctx context.Context, calls map[string]storage.ToolCall) error {
	if len(calls) == 0 {
		return nil
	}
	sql := noteCall + column.Before(storage.CallNotedEvery)
	return s.write(ctx, "note calls", func(c *conn) error {
		for id, call := range calls {
			if _, err := c.exec(sql, id, call.Tool, column.Millis(call.At)); err != nil {
				return err
			}
		}
		return nil
	})
}
