package sqlite

import (
	"context"
	"encoding/json"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// noteCalls stores the calls ?1, a JSON object keyed by grant id.
const noteCalls = `INSERT INTO last_calls AS l (grant_id, tool, called_at, kept_until)
SELECT g.id, v.value ->> 'tool', v.value ->> 'at', g.expires_at
FROM json_each(?1) v CROSS JOIN grants g ON g.id = v.key -- in this order: grants are many
WHERE g.revoked_at IS NULL AND g.expires_at > v.value ->> 'at' AND NOT ` + isCut + `
ON CONFLICT (grant_id) DO UPDATE SET tool = excluded.tool, called_at = excluded.called_at
	WHERE l.called_at <= excluded.called_at`

type notedCall struct {
	Tool string `json:"tool"`
	At   int64  `json:"at"`
}

// NoteCalls implements storage.LastCalls.
func (s *Store) NoteCalls(ctx context.Context, calls map[string]storage.ToolCall) error {
	if len(calls) == 0 {
		return nil
	}
	noted := make(map[string]notedCall, len(calls))
	for id, call := range calls {
		noted[id] = notedCall{call.Tool, column.Millis(call.At)}
	}
	object, err := json.Marshal(noted)
	if err != nil {
		return err
	}
	return s.write(ctx, "NoteCalls", func(c *conn) error {
		_, err := c.exec(noteCalls, string(object))
		return err
	})
}
